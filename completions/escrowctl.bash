# bash completion for escrowctl: static, made by `escrowctl completion bash`.
_escrowctl() {
  local cur=${COMP_WORDS[COMP_CWORD]} path= skip= words= word i
  for ((i = 1; i < COMP_CWORD; i++)); do
    word=${COMP_WORDS[i]}
    if [[ $skip ]]; then
      skip=
      continue
    fi
    case $word in
      --profile|-p|--base-url|--config|--timeout|--fields|--color|--data|--reason|--idempotency-key|--despite|--amount|--currency|--reference|--expect-amount|--expect-currency|--deadline|--url|--event|--mode|--api-prefix|--port|--ready-file|--limit) skip=1 ;;
      -*) ;;
      *)
        case "${path:+$path }$word" in
          'api'|'completion'|'help'|'tx'|'tx create'|'tx get'|'tx release'|'tx list'|'tx update'|'user'|'user get'|'webhook'|'webhook create'|'webhook list'|'auth'|'auth login'|'auth logout'|'auth status'|'auth switch'|'config'|'config path'|'config list'|'config get'|'config set'|'config unset'|'sandbox'|'sandbox serve'|'sandbox status'|'sandbox reset'|'journal'|'journal list'|'journal show') path="${path:+$path }$word" ;;
        esac ;;
    esac
  done
  case ${COMP_WORDS[COMP_CWORD - 1]} in
    --profile|-p) return ;;
    --base-url) return ;;
    --config) COMPREPLY=($(compgen -f -- "$cur")); return ;;
    --timeout) return ;;
    --fields) return ;;
    --color) words='auto always never' ;;
    --data) return ;;
    --reason) return ;;
    --idempotency-key) return ;;
    --despite) return ;;
    --amount) return ;;
    --currency) words='AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BHD BIF BMD BND BOB BOV BRL BSD BTN BWP BYN BZD CAD CDF CHE CHF CHW CLF CLP CNY COP COU CRC CUP CVE CZK DJF DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GNF GTQ GYD HKD HNL HTG HUF IDR ILS INR IQD IRR ISK JMD JOD JPY KES KGS KHR KMF KPW KRW KWD KYD KZT LAK LBP LKR LRD LSL LYD MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MXV MYR MZN NAD NGN NIO NOK NPR NZD OMR PAB PEN PGK PHP PKR PLN PYG QAR RON RSD RUB RWF SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TND TOP TRY TTD TWD TZS UAH UGX USD USN UYI UYU UYW UZS VED VES VND VUV WST XAD XAF XCD XCG XOF XPF YER ZAR ZMW ZWG' ;;
    --reference) return ;;
    --expect-amount) return ;;
    --expect-currency) words='AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BHD BIF BMD BND BOB BOV BRL BSD BTN BWP BYN BZD CAD CDF CHE CHF CHW CLF CLP CNY COP COU CRC CUP CVE CZK DJF DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GNF GTQ GYD HKD HNL HTG HUF IDR ILS INR IQD IRR ISK JMD JOD JPY KES KGS KHR KMF KPW KRW KWD KYD KZT LAK LBP LKR LRD LSL LYD MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MXV MYR MZN NAD NGN NIO NOK NPR NZD OMR PAB PEN PGK PHP PKR PLN PYG QAR RON RSD RUB RWF SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TND TOP TRY TTD TWD TZS UAH UGX USD USN UYI UYU UYW UZS VED VES VND VUV WST XAD XAF XCD XCG XOF XPF YER ZAR ZMW ZWG' ;;
    --deadline) return ;;
    --url) return ;;
    --event) return ;;
    --mode) return ;;
    --api-prefix) return ;;
    --port) return ;;
    --ready-file) return ;;
    --limit) return ;;
    *)
      case $path in
        '') words='api completion help tx user webhook auth config sandbox journal --profile -p --sandbox --base-url --config --timeout --json --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h' ;;
        'api') words='--data --yes -y --reason --idempotency-key --despite --dry-run --help --profile -p --sandbox --base-url --config --timeout --json --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h' ;;
        'completion') words='--profile -p --sandbox --base-url --config --timeout --json --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h' ;;
        'help') words='--help --profile -p --sandbox --base-url --config --timeout --json --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h' ;;
        'tx') words='create get release list update --help --profile -p --sandbox --base-url --config --timeout --json --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h' ;;
        'tx create') words='--amount --currency --reference --reason --data --idempotency-key --despite --dry-run --help --profile -p --sandbox --base-url --config --timeout --json --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h' ;;
        'tx get') words='--help --profile -p --sandbox --base-url --config --timeout --json --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h' ;;
        'tx release') words='--yes -y --expect-amount --expect-currency --ok-if-released --unread --wait --deadline --reason --data --idempotency-key --despite --dry-run --help --profile -p --sandbox --base-url --config --timeout --json --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h' ;;
        'tx list') words='--help --profile -p --sandbox --base-url --config --timeout --json --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h' ;;
        'tx update') words='--data --yes -y --unread --reason --idempotency-key --despite --dry-run --help --profile -p --sandbox --base-url --config --timeout --json --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h' ;;
        'user') words='get --help --profile -p --sandbox --base-url --config --timeout --json --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h' ;;
        'user get') words='--help --profile -p --sandbox --base-url --config --timeout --json --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h' ;;
        'webhook') words='create list --help --profile -p --sandbox --base-url --config --timeout --json --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h' ;;
        'webhook create') words='--url --event --reason --data --idempotency-key --despite --dry-run --help --profile -p --sandbox --base-url --config --timeout --json --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h' ;;
        'webhook list') words='--help --profile -p --sandbox --base-url --config --timeout --json --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h' ;;
        'auth') words='login logout status switch --help --profile -p --sandbox --base-url --config --timeout --json --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h' ;;
        'auth login') words='--mode --api-prefix --no-check --keyring --help --profile -p --sandbox --base-url --config --timeout --json --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h' ;;
        'auth logout') words='--help --profile -p --sandbox --base-url --config --timeout --json --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h' ;;
        'auth status') words='--check --help --profile -p --sandbox --base-url --config --timeout --json --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h' ;;
        'auth switch') words='--help --profile -p --sandbox --base-url --config --timeout --json --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h' ;;
        'config') words='path list get set unset --help --profile -p --sandbox --base-url --config --timeout --json --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h' ;;
        'config path') words='--help --profile -p --sandbox --base-url --config --timeout --json --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h' ;;
        'config list') words='--help --profile -p --sandbox --base-url --config --timeout --json --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h' ;;
        'config get') words='--help --profile -p --sandbox --base-url --config --timeout --json --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h' ;;
        'config set') words='--help --profile -p --sandbox --base-url --config --timeout --json --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h' ;;
        'config unset') words='--help --profile -p --sandbox --base-url --config --timeout --json --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h' ;;
        'sandbox') words='serve status reset --help --profile -p --sandbox --base-url --config --timeout --json --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h' ;;
        'sandbox serve') words='--port --ready-file --help --profile -p --sandbox --base-url --config --timeout --json --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h' ;;
        'sandbox status') words='--help --profile -p --sandbox --base-url --config --timeout --json --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h' ;;
        'sandbox reset') words='--yes -y --help --profile -p --sandbox --base-url --config --timeout --json --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h' ;;
        'journal') words='list show --help --profile -p --sandbox --base-url --config --timeout --json --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h' ;;
        'journal list') words='--limit --help --profile -p --sandbox --base-url --config --timeout --json --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h' ;;
        'journal show') words='--help --profile -p --sandbox --base-url --config --timeout --json --fields --raw --color --quiet -q --verbose -v --debug --no-input --version -V --help -h' ;;
      esac ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
}
complete -F _escrowctl escrowctl
