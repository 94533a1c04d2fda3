# bash completion for escrowctl: static, made by `escrowctl completion bash`.
# TAB starts no program. Names in the cache may come from a service: they are compared, never expanded.
_escrowctl_offer() {
  local word
  for word in $1; do
    [[ $word == "$cur"* ]] && COMPREPLY+=("$start$word")
  done
}
_escrowctl_find() {
  file=${ESCROWCTL_HOME:+$ESCROWCTL_HOME/cache}
  if [[ -z $file ]]; then
    case $OSTYPE in
      darwin*) file=$HOME/Library/Caches/escrowctl ;;
      *) file=${XDG_CACHE_HOME:-$HOME/.cache}/escrowctl ;;
    esac
  fi
  file+=/complete/$1
  [[ -f $file && -r $file && -O $file ]]
}
_escrowctl_cached() {
  local file line lines
  _escrowctl_find "$1" || return
  mapfile -t -n 500 lines <"$file"
  for line in "${lines[@]}"; do
    [[ $2 ]] && line=${line% released}
    [[ $line == "$cur"* && $line == [!-]* && $line != *[!A-Za-z0-9_-]* ]] || continue
    ((${#line} <= 128)) && COMPREPLY+=("$start$line")
  done
}
_escrowctl() {
  local cur=${COMP_WORDS[COMP_CWORD]} option=${COMP_WORDS[COMP_CWORD - 1]} start= path= skip= only= word i
  local scope=${ESCROWCTL_PROFILE:-@default} file LC_ALL=C IFS=$' \t\n'
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    word=${COMP_WORDS[i]}
    if [[ $word == = ]]; then
      skip=${skip:-value}
      [[ ${COMP_WORDS[i - 1]} == --profile ]] && skip=profile
      continue
    elif [[ $skip ]]; then
      [[ $skip == profile && $word =~ ^[A-Za-z0-9_-]+$ ]] && scope=$word
      skip=
      continue
    fi
    case $word in
      --) only=1 ;;
      -p | --profile) skip=profile ;;
      --profile=*) scope=${word#*=} ;;
      --sandbox) scope=@sandbox ;;
      --profile | -p | --base-url | --config | --timeout | --fields | --color | --amount | --currency | --reference | --reason | --data | --idempotency-key | --allow-duplicate | --expect-amount | --expect-currency | --deadline | --limit | --status | --since | --over | --for | --fail-on | --interval | --url | --event | --port | --forward-to | --secret-file | --ready-file | --header | -H | --tolerance | --expect-count | --expect-total | --run-key | --concurrency | --rps | --results | --state | --operation | --until | --id | --operator | --host | --from | --name | --admin | --mode | --api-prefix | --set | --seed | --tx) skip=value ;;
      -*) ;;
      *)
        case "${path:+$path }$word" in
          'tx' | 'tx create' | 'tx get' | 'tx release' | 'tx list' | 'tx update' | 'tx wait' | 'tx watch' | 'user' | 'user get' | 'webhook' | 'webhook create' | 'webhook list' | 'webhook listen' | 'webhook verify' | 'webhook replay' | 'batch' | 'batch create' | 'batch release' | 'batch resume' | 'batch work' | 'batch list' | 'batch show' | 'batch rejects' | 'batch drop' | 'journal' | 'journal list' | 'journal show' | 'journal resolve' | 'journal totals' | 'journal verify' | 'journal init' | 'journal open' | 'journal export' | 'journal import' | 'auth' | 'auth login' | 'auth logout' | 'auth status' | 'auth switch' | 'config' | 'config path' | 'config list' | 'config get' | 'config set' | 'config unset' | 'sandbox' | 'sandbox serve' | 'sandbox status' | 'sandbox reset' | 'sandbox set' | 'sandbox magic' | 'sandbox move' | 'sandbox ledger' | 'sandbox clock' | 'sandbox trigger' | 'sandbox deliveries' | 'api' | 'doctor' | 'completion' | 'completion bash' | 'completion zsh' | 'completion fish' | 'completion install' | 'help' | 'version') path="${path:+$path }$word" ;;
        esac
        ;;
    esac
  done
  [[ $scope == @default && -z $ESCROWCTL_BASE_URL ]] && _escrowctl_find default && read -r -n 64 scope <"$file"
  [[ $scope =~ ^@?[A-Za-z0-9_-]+$ ]] || scope=@default
  if [[ $cur == = ]]; then
    cur=
  elif [[ $option == = ]]; then
    option=${COMP_WORDS[COMP_CWORD - 2]}
  elif [[ $cur == --*=* ]]; then
    option=${cur%%=*} start=${cur%%=*}= cur=${cur#*=}
  fi
  [[ $only ]] && option=
  case $option in
    --profile | -p) _escrowctl_cached profile ;;
    --base-url)  ;;
    --config) compopt -o default 2>/dev/null ;;
    --timeout)  ;;
    --fields)  ;;
    --color) _escrowctl_offer 'auto always never' ;;
    --amount)  ;;
    --currency) _escrowctl_offer 'AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BHD BIF BMD BND BOB BOV BRL BSD BTN BWP BYN BZD CAD CDF CHE CHF CHW CLF CLP CNY COP COU CRC CUP CVE CZK DJF DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GNF GTQ GYD HKD HNL HTG HUF IDR ILS INR IQD IRR ISK JMD JOD JPY KES KGS KHR KMF KPW KRW KWD KYD KZT LAK LBP LKR LRD LSL LYD MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MXV MYR MZN NAD NGN NIO NOK NPR NZD OMR PAB PEN PGK PHP PKR PLN PYG QAR RON RSD RUB RWF SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TND TOP TRY TTD TWD TZS UAH UGX USD USN UYI UYU UYW UZS VED VES VND VUV WST XAD XAF XCD XCG XOF XPF YER ZAR ZMW ZWG' ;;
    --reference)  ;;
    --reason)  ;;
    --data)  ;;
    --idempotency-key)  ;;
    --allow-duplicate) _escrowctl_cached "${scope/#[^@]*/@default}/entry" ;;
    --expect-amount)  ;;
    --expect-currency) _escrowctl_offer 'AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BHD BIF BMD BND BOB BOV BRL BSD BTN BWP BYN BZD CAD CDF CHE CHF CHW CLF CLP CNY COP COU CRC CUP CVE CZK DJF DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GNF GTQ GYD HKD HNL HTG HUF IDR ILS INR IQD IRR ISK JMD JOD JPY KES KGS KHR KMF KPW KRW KWD KYD KZT LAK LBP LKR LRD LSL LYD MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MXV MYR MZN NAD NGN NIO NOK NPR NZD OMR PAB PEN PGK PHP PKR PLN PYG QAR RON RSD RUB RWF SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TND TOP TRY TTD TWD TZS UAH UGX USD USN UYI UYU UYW UZS VED VES VND VUV WST XAD XAF XCD XCG XOF XPF YER ZAR ZMW ZWG' ;;
    --deadline)  ;;
    --limit)  ;;
    --status)  ;;
    --since)  ;;
    --over)  ;;
    --for)  ;;
    --fail-on)  ;;
    --interval)  ;;
    --url)  ;;
    --event) case $path in 'webhook verify') _escrowctl_cached "$scope/event" ;; *) _escrowctl_offer 'transaction.created transaction.updated transaction.released transaction.expired' ;; esac ;;
    --port)  ;;
    --forward-to)  ;;
    --secret-file) compopt -o default 2>/dev/null ;;
    --ready-file) compopt -o default 2>/dev/null ;;
    --header | -H)  ;;
    --tolerance)  ;;
    --expect-count)  ;;
    --expect-total)  ;;
    --run-key)  ;;
    --concurrency)  ;;
    --rps)  ;;
    --results) compopt -o default 2>/dev/null ;;
    --state) _escrowctl_offer 'in_flight done refused unknown not_sent not_applied unconfirmed' ;;
    --operation) _escrowctl_offer 'create release update webhook call' ;;
    --until)  ;;
    --id)  ;;
    --operator)  ;;
    --host)  ;;
    --from)  ;;
    --name)  ;;
    --admin)  ;;
    --mode) _escrowctl_offer 'test live' ;;
    --api-prefix)  ;;
    --set)  ;;
    --seed)  ;;
    --tx) _escrowctl_cached "$scope/transaction" released ;;
    *)
      case $path in
        '')
          if [[ $cur == -* && -z $only ]]; then
            _escrowctl_offer '--profile -p --sandbox --base-url --config --timeout --json --table --csv --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h'
          else
            _escrowctl_offer 'tx user webhook batch journal auth config sandbox api doctor completion help version'
          fi
          ;;
        'tx')
          if [[ $cur == -* && -z $only ]]; then
            _escrowctl_offer '--profile -p --sandbox --base-url --config --timeout --json --table --csv --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h'
          else
            _escrowctl_offer 'create get release list update wait watch'
          fi
          ;;
        'tx create')
          if [[ $cur == -* && -z $only ]]; then
            _escrowctl_offer '--amount --currency --reference --reason --data --idempotency-key --allow-duplicate --already-sent --yes -y --dry-run --profile -p --sandbox --base-url --config --timeout --json --table --csv --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h'
          fi
          ;;
        'tx get')
          if [[ $cur == -* && -z $only ]]; then
            _escrowctl_offer '--profile -p --sandbox --base-url --config --timeout --json --table --csv --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h'
          else
            _escrowctl_cached "$scope/transaction" released
          fi
          ;;
        'tx release')
          if [[ $cur == -* && -z $only ]]; then
            _escrowctl_offer '--yes -y --expect-amount --expect-currency --skip-released --allow-unreadable --wait --deadline --reason --data --idempotency-key --allow-duplicate --already-sent --dry-run --profile -p --sandbox --base-url --config --timeout --json --table --csv --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h'
          else
            _escrowctl_cached "$scope/transaction"
          fi
          ;;
        'tx list')
          if [[ $cur == -* && -z $only ]]; then
            _escrowctl_offer '--limit --all --status --since --reference --local --refresh --over --profile -p --sandbox --base-url --config --timeout --json --table --csv --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h'
          fi
          ;;
        'tx update')
          if [[ $cur == -* && -z $only ]]; then
            _escrowctl_offer '--data --yes -y --allow-unreadable --reason --idempotency-key --allow-duplicate --dry-run --profile -p --sandbox --base-url --config --timeout --json --table --csv --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h'
          else
            _escrowctl_cached "$scope/transaction" released
          fi
          ;;
        'tx wait')
          if [[ $cur == -* && -z $only ]]; then
            _escrowctl_offer '--for --fail-on --deadline --profile -p --sandbox --base-url --config --timeout --json --table --csv --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h'
          else
            _escrowctl_cached "$scope/transaction" released
          fi
          ;;
        'tx watch')
          if [[ $cur == -* && -z $only ]]; then
            _escrowctl_offer '--interval --deadline --profile -p --sandbox --base-url --config --timeout --json --table --csv --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h'
          else
            _escrowctl_cached "$scope/transaction" released
          fi
          ;;
        'user')
          if [[ $cur == -* && -z $only ]]; then
            _escrowctl_offer '--profile -p --sandbox --base-url --config --timeout --json --table --csv --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h'
          else
            _escrowctl_offer 'get'
          fi
          ;;
        'user get')
          if [[ $cur == -* && -z $only ]]; then
            _escrowctl_offer '--profile -p --sandbox --base-url --config --timeout --json --table --csv --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h'
          else
            _escrowctl_cached "$scope/user"
          fi
          ;;
        'webhook')
          if [[ $cur == -* && -z $only ]]; then
            _escrowctl_offer '--profile -p --sandbox --base-url --config --timeout --json --table --csv --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h'
          else
            _escrowctl_offer 'create list listen verify replay'
          fi
          ;;
        'webhook create')
          if [[ $cur == -* && -z $only ]]; then
            _escrowctl_offer '--url --event --reason --data --idempotency-key --allow-duplicate --dry-run --profile -p --sandbox --base-url --config --timeout --json --table --csv --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h'
          fi
          ;;
        'webhook list')
          if [[ $cur == -* && -z $only ]]; then
            _escrowctl_offer '--profile -p --sandbox --base-url --config --timeout --json --table --csv --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h'
          fi
          ;;
        'webhook listen')
          if [[ $cur == -* && -z $only ]]; then
            _escrowctl_offer '--port --forward-to --unverified --register --url --yes -y --secret-file --print-secret --ready-file --profile -p --sandbox --base-url --config --timeout --json --table --csv --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h'
          fi
          ;;
        'webhook verify')
          if [[ $cur == -* && -z $only ]]; then
            _escrowctl_offer '--header -H --event --tolerance --secret-file --profile -p --sandbox --base-url --config --timeout --json --table --csv --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h'
          fi
          ;;
        'webhook replay')
          if [[ $cur == -* && -z $only ]]; then
            _escrowctl_offer '--forward-to --since --failed --duplicate --sign --unverified --secret-file --profile -p --sandbox --base-url --config --timeout --json --table --csv --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h'
          else
            _escrowctl_cached "$scope/event"
          fi
          ;;
        'batch')
          if [[ $cur == -* && -z $only ]]; then
            _escrowctl_offer '--profile -p --sandbox --base-url --config --timeout --json --table --csv --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h'
          else
            _escrowctl_offer 'create release resume work list show rejects drop'
          fi
          ;;
        'batch create')
          if [[ $cur == -* && -z $only ]]; then
            _escrowctl_offer '--yes -y --expect-count --expect-total --dry-run --skip-done --run-key --concurrency --rps --results --profile -p --sandbox --base-url --config --timeout --json --table --csv --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h'
          else
            compopt -o default 2>/dev/null
          fi
          ;;
        'batch release')
          if [[ $cur == -* && -z $only ]]; then
            _escrowctl_offer '--yes -y --expect-count --expect-total --dry-run --skip-done --concurrency --rps --results --profile -p --sandbox --base-url --config --timeout --json --table --csv --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h'
          else
            compopt -o default 2>/dev/null
          fi
          ;;
        'batch resume')
          if [[ $cur == -* && -z $only ]]; then
            _escrowctl_offer '--yes -y --expect-count --expect-total --dry-run --concurrency --rps --results --profile -p --sandbox --base-url --config --timeout --json --table --csv --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h'
          else
            _escrowctl_cached "${scope/#[^@]*/@default}/batch"
          fi
          ;;
        'batch work')
          if [[ $cur == -* && -z $only ]]; then
            _escrowctl_offer '--yes -y --concurrency --profile -p --sandbox --base-url --config --timeout --json --table --csv --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h'
          else
            _escrowctl_cached "${scope/#[^@]*/@default}/batch"
          fi
          ;;
        'batch list')
          if [[ $cur == -* && -z $only ]]; then
            _escrowctl_offer '--profile -p --sandbox --base-url --config --timeout --json --table --csv --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h'
          fi
          ;;
        'batch show')
          if [[ $cur == -* && -z $only ]]; then
            _escrowctl_offer '--results --profile -p --sandbox --base-url --config --timeout --json --table --csv --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h'
          else
            _escrowctl_cached "${scope/#[^@]*/@default}/batch"
          fi
          ;;
        'batch rejects')
          if [[ $cur == -* && -z $only ]]; then
            _escrowctl_offer '--profile -p --sandbox --base-url --config --timeout --json --table --csv --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h'
          else
            _escrowctl_cached "${scope/#[^@]*/@default}/batch"
          fi
          ;;
        'batch drop')
          if [[ $cur == -* && -z $only ]]; then
            _escrowctl_offer '--yes -y --profile -p --sandbox --base-url --config --timeout --json --table --csv --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h'
          else
            _escrowctl_cached "${scope/#[^@]*/@default}/batch"
          fi
          ;;
        'journal')
          if [[ $cur == -* && -z $only ]]; then
            _escrowctl_offer '--profile -p --sandbox --base-url --config --timeout --json --table --csv --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h'
          else
            _escrowctl_offer 'list show resolve totals verify init open export import'
          fi
          ;;
        'journal list')
          if [[ $cur == -* && -z $only ]]; then
            _escrowctl_offer '--limit --unknown --state --operation --since --until --reference --id --operator --host --duplicates --profile -p --sandbox --base-url --config --timeout --json --table --csv --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h'
          fi
          ;;
        'journal show')
          if [[ $cur == -* && -z $only ]]; then
            _escrowctl_offer '--profile -p --sandbox --base-url --config --timeout --json --table --csv --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h'
          else
            _escrowctl_cached "${scope/#[^@]*/@default}/entry"
          fi
          ;;
        'journal resolve')
          if [[ $cur == -* && -z $only ]]; then
            _escrowctl_offer '--applied --id --not-applied --resend --reason --allow-unreadable --yes --profile -p --sandbox --base-url --config --timeout --json --table --csv --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h'
          else
            _escrowctl_cached "${scope/#[^@]*/@default}/entry"
          fi
          ;;
        'journal totals')
          if [[ $cur == -* && -z $only ]]; then
            _escrowctl_offer '--since --until --profile -p --sandbox --base-url --config --timeout --json --table --csv --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h'
          fi
          ;;
        'journal verify')
          if [[ $cur == -* && -z $only ]]; then
            _escrowctl_offer '--head --profile -p --sandbox --base-url --config --timeout --json --table --csv --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h'
          fi
          ;;
        'journal init')
          if [[ $cur == -* && -z $only ]]; then
            _escrowctl_offer '--from --name --admin --single-role --plan --print --yes -y --profile -p --sandbox --base-url --config --timeout --json --table --csv --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h'
          fi
          ;;
        'journal open')
          if [[ $cur == -* && -z $only ]]; then
            _escrowctl_offer '--reason --yes -y --profile -p --sandbox --base-url --config --timeout --json --table --csv --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h'
          fi
          ;;
        'journal export')
          if [[ $cur == -* && -z $only ]]; then
            _escrowctl_offer '--head --profile -p --sandbox --base-url --config --timeout --json --table --csv --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h'
          fi
          ;;
        'journal import')
          if [[ $cur == -* && -z $only ]]; then
            _escrowctl_offer '--own --profile -p --sandbox --base-url --config --timeout --json --table --csv --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h'
          fi
          ;;
        'auth')
          if [[ $cur == -* && -z $only ]]; then
            _escrowctl_offer '--profile -p --sandbox --base-url --config --timeout --json --table --csv --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h'
          else
            _escrowctl_offer 'login logout status switch'
          fi
          ;;
        'auth login')
          if [[ $cur == -* && -z $only ]]; then
            _escrowctl_offer '--mode --api-prefix --no-check --keyring --profile -p --sandbox --base-url --config --timeout --json --table --csv --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h'
          fi
          ;;
        'auth logout')
          if [[ $cur == -* && -z $only ]]; then
            _escrowctl_offer '--all --profile -p --sandbox --base-url --config --timeout --json --table --csv --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h'
          fi
          ;;
        'auth status')
          if [[ $cur == -* && -z $only ]]; then
            _escrowctl_offer '--check --profile -p --sandbox --base-url --config --timeout --json --table --csv --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h'
          fi
          ;;
        'auth switch')
          if [[ $cur == -* && -z $only ]]; then
            _escrowctl_offer '--profile -p --sandbox --base-url --config --timeout --json --table --csv --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h'
          else
            _escrowctl_cached profile
          fi
          ;;
        'config')
          if [[ $cur == -* && -z $only ]]; then
            _escrowctl_offer '--profile -p --sandbox --base-url --config --timeout --json --table --csv --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h'
          else
            _escrowctl_offer 'path list get set unset'
          fi
          ;;
        'config path')
          if [[ $cur == -* && -z $only ]]; then
            _escrowctl_offer '--profile -p --sandbox --base-url --config --timeout --json --table --csv --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h'
          fi
          ;;
        'config list')
          if [[ $cur == -* && -z $only ]]; then
            _escrowctl_offer '--profile -p --sandbox --base-url --config --timeout --json --table --csv --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h'
          fi
          ;;
        'config get')
          if [[ $cur == -* && -z $only ]]; then
            _escrowctl_offer '--profile -p --sandbox --base-url --config --timeout --json --table --csv --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h'
          else
            _escrowctl_offer 'default_profile base_url mode api_prefix api_key_file read_only timeout status.released status.pending status.failed reply.id reply.status reply.amount reply.currency webhook.url_field webhook.events_field webhook.scheme webhook.signature_header reference_field currencies idempotency retry_throttled account service_id journal_id journal profile ca_bundle proxy'
          fi
          ;;
        'config set')
          if [[ $cur == -* && -z $only ]]; then
            _escrowctl_offer '--profile -p --sandbox --base-url --config --timeout --json --table --csv --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h'
          else
            _escrowctl_offer 'default_profile base_url mode api_prefix api_key_file read_only timeout status.released status.pending status.failed reply.id reply.status reply.amount reply.currency webhook.url_field webhook.events_field webhook.scheme webhook.signature_header reference_field currencies idempotency retry_throttled account service_id journal_id journal'
          fi
          ;;
        'config unset')
          if [[ $cur == -* && -z $only ]]; then
            _escrowctl_offer '--profile -p --sandbox --base-url --config --timeout --json --table --csv --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h'
          else
            _escrowctl_offer 'default_profile base_url mode api_prefix api_key_file read_only timeout status.released status.pending status.failed reply.id reply.status reply.amount reply.currency webhook.url_field webhook.events_field webhook.scheme webhook.signature_header reference_field currencies idempotency retry_throttled account service_id journal_id journal'
          fi
          ;;
        'sandbox')
          if [[ $cur == -* && -z $only ]]; then
            _escrowctl_offer '--profile -p --sandbox --base-url --config --timeout --json --table --csv --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h'
          else
            _escrowctl_offer 'serve status reset set magic move ledger clock trigger deliveries'
          fi
          ;;
        'sandbox serve')
          if [[ $cur == -* && -z $only ]]; then
            _escrowctl_offer '--port --ready-file --set --profile -p --sandbox --base-url --config --timeout --json --table --csv --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h'
          fi
          ;;
        'sandbox status')
          if [[ $cur == -* && -z $only ]]; then
            _escrowctl_offer '--profile -p --sandbox --base-url --config --timeout --json --table --csv --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h'
          fi
          ;;
        'sandbox reset')
          if [[ $cur == -* && -z $only ]]; then
            _escrowctl_offer '--yes -y --seed --profile -p --sandbox --base-url --config --timeout --json --table --csv --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h'
          fi
          ;;
        'sandbox set')
          if [[ $cur == -* && -z $only ]]; then
            _escrowctl_offer '--clear --profile -p --sandbox --base-url --config --timeout --json --table --csv --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h'
          fi
          ;;
        'sandbox magic')
          if [[ $cur == -* && -z $only ]]; then
            _escrowctl_offer '--profile -p --sandbox --base-url --config --timeout --json --table --csv --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h'
          fi
          ;;
        'sandbox move')
          if [[ $cur == -* && -z $only ]]; then
            _escrowctl_offer '--profile -p --sandbox --base-url --config --timeout --json --table --csv --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h'
          fi
          ;;
        'sandbox ledger')
          if [[ $cur == -* && -z $only ]]; then
            _escrowctl_offer '--check --profile -p --sandbox --base-url --config --timeout --json --table --csv --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h'
          fi
          ;;
        'sandbox clock')
          if [[ $cur == -* && -z $only ]]; then
            _escrowctl_offer '--profile -p --sandbox --base-url --config --timeout --json --table --csv --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h'
          fi
          ;;
        'sandbox trigger')
          if [[ $cur == -* && -z $only ]]; then
            _escrowctl_offer '--id --profile -p --sandbox --base-url --config --timeout --json --table --csv --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h'
          else
            _escrowctl_offer 'transaction.created transaction.updated transaction.released transaction.expired'
          fi
          ;;
        'sandbox deliveries')
          if [[ $cur == -* && -z $only ]]; then
            _escrowctl_offer '--replay --undelivered --limit --profile -p --sandbox --base-url --config --timeout --json --table --csv --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h'
          fi
          ;;
        'api')
          if [[ $cur == -* && -z $only ]]; then
            _escrowctl_offer '--data --yes -y --reason --idempotency-key --allow-duplicate --dry-run --profile -p --sandbox --base-url --config --timeout --json --table --csv --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h'
          fi
          ;;
        'doctor')
          if [[ $cur == -* && -z $only ]]; then
            _escrowctl_offer '--tx --save --profile -p --sandbox --base-url --config --timeout --json --table --csv --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h'
          fi
          ;;
        'completion')
          if [[ $cur == -* && -z $only ]]; then
            _escrowctl_offer '--profile -p --sandbox --base-url --config --timeout --json --table --csv --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h'
          else
            _escrowctl_offer 'bash zsh fish install'
          fi
          ;;
        'completion bash')
          if [[ $cur == -* && -z $only ]]; then
            _escrowctl_offer '--profile -p --sandbox --base-url --config --timeout --json --table --csv --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h'
          fi
          ;;
        'completion zsh')
          if [[ $cur == -* && -z $only ]]; then
            _escrowctl_offer '--profile -p --sandbox --base-url --config --timeout --json --table --csv --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h'
          fi
          ;;
        'completion fish')
          if [[ $cur == -* && -z $only ]]; then
            _escrowctl_offer '--profile -p --sandbox --base-url --config --timeout --json --table --csv --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h'
          fi
          ;;
        'completion install')
          if [[ $cur == -* && -z $only ]]; then
            _escrowctl_offer '--force --profile -p --sandbox --base-url --config --timeout --json --table --csv --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h'
          else
            _escrowctl_offer 'bash zsh fish'
          fi
          ;;
        'help')
          if [[ $cur == -* && -z $only ]]; then
            _escrowctl_offer '--profile -p --sandbox --base-url --config --timeout --json --table --csv --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h'
          else
            _escrowctl_offer 'tx user webhook batch journal auth config sandbox api doctor completion help version options settings environment output exit-codes money-safety webhooks contract'
          fi
          ;;
        'version')
          if [[ $cur == -* && -z $only ]]; then
            _escrowctl_offer '--profile -p --sandbox --base-url --config --timeout --json --table --csv --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h'
          fi
          ;;
      esac
      ;;
  esac
}
complete -F _escrowctl escrowctl
