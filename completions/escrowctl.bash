# bash completion for escrowctl: static, made by `escrowctl completion bash`.
# TAB starts no program. Names in the cache may come from a service: they are compared, never expanded.
_escrowctl_offer() {
  local word
  for word in $1; do
    [[ $word == "$cur"* ]] && COMPREPLY+=("$start$word")
  done
}
_escrowctl_cached() {
  local file=${ESCROWCTL_HOME:+$ESCROWCTL_HOME/cache} line lines
  if [[ -z $file ]]; then
    case $OSTYPE in
      darwin*) file=$HOME/Library/Caches/escrowctl ;;
      *) file=${XDG_CACHE_HOME:-$HOME/.cache}/escrowctl ;;
    esac
  fi
  file+=/complete/$1
  [[ -f $file && -r $file && -O $file ]] || return
  mapfile -t -n 500 lines <"$file"
  for line in "${lines[@]}"; do
    [[ $line == "$cur"* && $line == [!-]* && $line != *[!A-Za-z0-9_-]* ]] || continue
    ((${#line} <= 128)) && COMPREPLY+=("$start$line")
  done
}
_escrowctl() {
  local cur=${COMP_WORDS[COMP_CWORD]} option=${COMP_WORDS[COMP_CWORD - 1]} start= path= skip= only= word i
  local scope=${ESCROWCTL_PROFILE:-@default} LC_ALL=C IFS=$' \t\n'
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
      --profile | -p | --base-url | --config | --timeout | --fields | --color | --amount | --currency | --reference | --reason | --data | --idempotency-key | --allow-duplicate | --expect-amount | --expect-currency | --deadline | --limit | --status | --since | --over | --for | --fail-on | --interval | --url | --event | --expect-count | --expect-total | --run-key | --concurrency | --rps | --results | --state | --operation | --until | --id | --mode | --api-prefix | --port | --ready-file | --tx) skip=value ;;
      -*) ;;
      *)
        case "${path:+$path }$word" in
          'tx' | 'tx create' | 'tx get' | 'tx release' | 'tx list' | 'tx update' | 'tx wait' | 'tx watch' | 'user' | 'user get' | 'webhook' | 'webhook create' | 'webhook list' | 'batch' | 'batch create' | 'batch release' | 'batch resume' | 'batch list' | 'batch show' | 'batch rejects' | 'batch drop' | 'journal' | 'journal list' | 'journal show' | 'journal resolve' | 'journal totals' | 'journal verify' | 'journal init' | 'journal export' | 'journal import' | 'auth' | 'auth login' | 'auth logout' | 'auth status' | 'auth switch' | 'config' | 'config path' | 'config list' | 'config get' | 'config set' | 'config unset' | 'sandbox' | 'sandbox serve' | 'sandbox status' | 'sandbox reset' | 'api' | 'doctor' | 'completion' | 'completion bash' | 'completion zsh' | 'completion fish' | 'completion install' | 'help' | 'version') path="${path:+$path }$word" ;;
        esac
        ;;
    esac
  done
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
    --allow-duplicate)  ;;
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
    --event)  ;;
    --expect-count)  ;;
    --expect-total)  ;;
    --run-key)  ;;
    --concurrency)  ;;
    --rps)  ;;
    --results) compopt -o default 2>/dev/null ;;
    --state)  ;;
    --operation)  ;;
    --until)  ;;
    --id)  ;;
    --mode) _escrowctl_offer 'test live' ;;
    --api-prefix)  ;;
    --port)  ;;
    --ready-file) compopt -o default 2>/dev/null ;;
    --tx) _escrowctl_cached transaction ;;
    *)
      case $path in
        '')
          [[ $only ]] || _escrowctl_offer 'tx user webhook batch journal auth config sandbox api doctor completion help version --profile -p --sandbox --base-url --config --timeout --json --table --csv --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h'
          ;;
        'tx')
          [[ $only ]] || _escrowctl_offer 'create get release list update wait watch --profile -p --sandbox --base-url --config --timeout --json --table --csv --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h'
          ;;
        'tx create')
          [[ $only ]] || _escrowctl_offer '--amount --currency --reference --reason --data --idempotency-key --allow-duplicate --yes -y --dry-run --profile -p --sandbox --base-url --config --timeout --json --table --csv --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h'
          ;;
        'tx get')
          [[ $only ]] || _escrowctl_offer '--profile -p --sandbox --base-url --config --timeout --json --table --csv --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h'
          [[ $cur == -* && -z $only ]] || _escrowctl_cached "$scope/transaction"
          ;;
        'tx release')
          [[ $only ]] || _escrowctl_offer '--yes -y --expect-amount --expect-currency --skip-released --allow-unreadable --wait --deadline --reason --data --idempotency-key --allow-duplicate --dry-run --profile -p --sandbox --base-url --config --timeout --json --table --csv --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h'
          [[ $cur == -* && -z $only ]] || _escrowctl_cached "$scope/transaction"
          ;;
        'tx list')
          [[ $only ]] || _escrowctl_offer '--limit --all --status --since --reference --local --refresh --over --profile -p --sandbox --base-url --config --timeout --json --table --csv --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h'
          ;;
        'tx update')
          [[ $only ]] || _escrowctl_offer '--data --yes -y --allow-unreadable --reason --idempotency-key --allow-duplicate --dry-run --profile -p --sandbox --base-url --config --timeout --json --table --csv --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h'
          [[ $cur == -* && -z $only ]] || _escrowctl_cached "$scope/transaction"
          ;;
        'tx wait')
          [[ $only ]] || _escrowctl_offer '--for --fail-on --deadline --profile -p --sandbox --base-url --config --timeout --json --table --csv --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h'
          [[ $cur == -* && -z $only ]] || _escrowctl_cached "$scope/transaction"
          ;;
        'tx watch')
          [[ $only ]] || _escrowctl_offer '--interval --deadline --profile -p --sandbox --base-url --config --timeout --json --table --csv --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h'
          [[ $cur == -* && -z $only ]] || _escrowctl_cached "$scope/transaction"
          ;;
        'user')
          [[ $only ]] || _escrowctl_offer 'get --profile -p --sandbox --base-url --config --timeout --json --table --csv --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h'
          ;;
        'user get')
          [[ $only ]] || _escrowctl_offer '--profile -p --sandbox --base-url --config --timeout --json --table --csv --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h'
          [[ $cur == -* && -z $only ]] || _escrowctl_cached "$scope/user"
          ;;
        'webhook')
          [[ $only ]] || _escrowctl_offer 'create list --profile -p --sandbox --base-url --config --timeout --json --table --csv --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h'
          ;;
        'webhook create')
          [[ $only ]] || _escrowctl_offer '--url --event --reason --data --idempotency-key --allow-duplicate --dry-run --profile -p --sandbox --base-url --config --timeout --json --table --csv --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h'
          ;;
        'webhook list')
          [[ $only ]] || _escrowctl_offer '--profile -p --sandbox --base-url --config --timeout --json --table --csv --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h'
          ;;
        'batch')
          [[ $only ]] || _escrowctl_offer 'create release resume list show rejects drop --profile -p --sandbox --base-url --config --timeout --json --table --csv --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h'
          ;;
        'batch create')
          [[ $only || $cur != -* ]] || _escrowctl_offer '--yes -y --expect-count --expect-total --dry-run --skip-done --run-key --concurrency --rps --results --profile -p --sandbox --base-url --config --timeout --json --table --csv --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h'
          [[ $cur == -* && -z $only ]] || compopt -o default 2>/dev/null
          ;;
        'batch release')
          [[ $only || $cur != -* ]] || _escrowctl_offer '--yes -y --expect-count --expect-total --dry-run --skip-done --concurrency --rps --results --profile -p --sandbox --base-url --config --timeout --json --table --csv --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h'
          [[ $cur == -* && -z $only ]] || compopt -o default 2>/dev/null
          ;;
        'batch resume')
          [[ $only ]] || _escrowctl_offer '--yes -y --expect-count --expect-total --dry-run --concurrency --rps --results --profile -p --sandbox --base-url --config --timeout --json --table --csv --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h'
          ;;
        'batch list')
          [[ $only ]] || _escrowctl_offer '--profile -p --sandbox --base-url --config --timeout --json --table --csv --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h'
          ;;
        'batch show')
          [[ $only ]] || _escrowctl_offer '--results --profile -p --sandbox --base-url --config --timeout --json --table --csv --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h'
          ;;
        'batch rejects')
          [[ $only ]] || _escrowctl_offer '--profile -p --sandbox --base-url --config --timeout --json --table --csv --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h'
          ;;
        'batch drop')
          [[ $only ]] || _escrowctl_offer '--yes -y --profile -p --sandbox --base-url --config --timeout --json --table --csv --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h'
          ;;
        'journal')
          [[ $only ]] || _escrowctl_offer 'list show resolve totals verify init export import --profile -p --sandbox --base-url --config --timeout --json --table --csv --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h'
          ;;
        'journal list')
          [[ $only ]] || _escrowctl_offer '--limit --unknown --state --operation --since --until --reference --id --profile -p --sandbox --base-url --config --timeout --json --table --csv --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h'
          ;;
        'journal show')
          [[ $only ]] || _escrowctl_offer '--profile -p --sandbox --base-url --config --timeout --json --table --csv --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h'
          ;;
        'journal resolve')
          [[ $only ]] || _escrowctl_offer '--applied --id --not-applied --resend --reason --allow-unreadable --yes --profile -p --sandbox --base-url --config --timeout --json --table --csv --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h'
          ;;
        'journal totals')
          [[ $only ]] || _escrowctl_offer '--since --until --profile -p --sandbox --base-url --config --timeout --json --table --csv --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h'
          ;;
        'journal verify')
          [[ $only ]] || _escrowctl_offer '--head --accept-head --profile -p --sandbox --base-url --config --timeout --json --table --csv --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h'
          ;;
        'journal init')
          [[ $only ]] || _escrowctl_offer '--profile -p --sandbox --base-url --config --timeout --json --table --csv --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h'
          ;;
        'journal export')
          [[ $only ]] || _escrowctl_offer '--head --profile -p --sandbox --base-url --config --timeout --json --table --csv --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h'
          ;;
        'journal import')
          [[ $only || $cur != -* ]] || _escrowctl_offer '--restore --profile -p --sandbox --base-url --config --timeout --json --table --csv --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h'
          [[ $cur == -* && -z $only ]] || compopt -o default 2>/dev/null
          ;;
        'auth')
          [[ $only ]] || _escrowctl_offer 'login logout status switch --profile -p --sandbox --base-url --config --timeout --json --table --csv --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h'
          ;;
        'auth login')
          [[ $only ]] || _escrowctl_offer '--mode --api-prefix --no-check --keyring --profile -p --sandbox --base-url --config --timeout --json --table --csv --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h'
          ;;
        'auth logout')
          [[ $only ]] || _escrowctl_offer '--profile -p --sandbox --base-url --config --timeout --json --table --csv --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h'
          ;;
        'auth status')
          [[ $only ]] || _escrowctl_offer '--check --profile -p --sandbox --base-url --config --timeout --json --table --csv --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h'
          ;;
        'auth switch')
          [[ $only ]] || _escrowctl_offer '--profile -p --sandbox --base-url --config --timeout --json --table --csv --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h'
          [[ $cur == -* && -z $only ]] || _escrowctl_cached profile
          ;;
        'config')
          [[ $only ]] || _escrowctl_offer 'path list get set unset --profile -p --sandbox --base-url --config --timeout --json --table --csv --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h'
          ;;
        'config path')
          [[ $only ]] || _escrowctl_offer '--profile -p --sandbox --base-url --config --timeout --json --table --csv --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h'
          ;;
        'config list')
          [[ $only ]] || _escrowctl_offer '--profile -p --sandbox --base-url --config --timeout --json --table --csv --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h'
          ;;
        'config get')
          [[ $only ]] || _escrowctl_offer 'default_profile base_url mode api_prefix api_key_file read_only timeout status.released status.pending status.failed reply.id reply.status reply.amount reply.currency webhook.url_field webhook.events_field reference_field currencies idempotency retry_throttled account service_id journal_id profile ca_bundle proxy --profile -p --sandbox --base-url --config --timeout --json --table --csv --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h'
          ;;
        'config set')
          [[ $only ]] || _escrowctl_offer 'default_profile base_url mode api_prefix api_key_file read_only timeout status.released status.pending status.failed reply.id reply.status reply.amount reply.currency webhook.url_field webhook.events_field reference_field currencies idempotency retry_throttled account service_id journal_id --profile -p --sandbox --base-url --config --timeout --json --table --csv --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h'
          ;;
        'config unset')
          [[ $only ]] || _escrowctl_offer 'default_profile base_url mode api_prefix api_key_file read_only timeout status.released status.pending status.failed reply.id reply.status reply.amount reply.currency webhook.url_field webhook.events_field reference_field currencies idempotency retry_throttled account service_id journal_id --profile -p --sandbox --base-url --config --timeout --json --table --csv --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h'
          ;;
        'sandbox')
          [[ $only ]] || _escrowctl_offer 'serve status reset --profile -p --sandbox --base-url --config --timeout --json --table --csv --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h'
          ;;
        'sandbox serve')
          [[ $only ]] || _escrowctl_offer '--port --ready-file --profile -p --sandbox --base-url --config --timeout --json --table --csv --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h'
          ;;
        'sandbox status')
          [[ $only ]] || _escrowctl_offer '--profile -p --sandbox --base-url --config --timeout --json --table --csv --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h'
          ;;
        'sandbox reset')
          [[ $only ]] || _escrowctl_offer '--yes -y --profile -p --sandbox --base-url --config --timeout --json --table --csv --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h'
          ;;
        'api')
          [[ $only ]] || _escrowctl_offer '--data --yes -y --reason --idempotency-key --allow-duplicate --dry-run --profile -p --sandbox --base-url --config --timeout --json --table --csv --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h'
          ;;
        'doctor')
          [[ $only ]] || _escrowctl_offer '--tx --save --profile -p --sandbox --base-url --config --timeout --json --table --csv --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h'
          ;;
        'completion')
          [[ $only ]] || _escrowctl_offer 'bash zsh fish install --profile -p --sandbox --base-url --config --timeout --json --table --csv --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h'
          ;;
        'completion bash')
          [[ $only ]] || _escrowctl_offer '--profile -p --sandbox --base-url --config --timeout --json --table --csv --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h'
          ;;
        'completion zsh')
          [[ $only ]] || _escrowctl_offer '--profile -p --sandbox --base-url --config --timeout --json --table --csv --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h'
          ;;
        'completion fish')
          [[ $only ]] || _escrowctl_offer '--profile -p --sandbox --base-url --config --timeout --json --table --csv --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h'
          ;;
        'completion install')
          [[ $only ]] || _escrowctl_offer 'bash zsh fish --force --profile -p --sandbox --base-url --config --timeout --json --table --csv --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h'
          ;;
        'help')
          [[ $only ]] || _escrowctl_offer 'tx user webhook batch journal auth config sandbox api doctor completion help version options settings environment output exit-codes money-safety contract --profile -p --sandbox --base-url --config --timeout --json --table --csv --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h'
          ;;
        'version')
          [[ $only ]] || _escrowctl_offer '--profile -p --sandbox --base-url --config --timeout --json --table --csv --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h'
          ;;
      esac
      ;;
  esac
}
complete -F _escrowctl escrowctl
