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
      @VALUED@) skip=value ;;
      -*) ;;
      *)
        case "${path:+$path }$word" in
          @PATHS@) path="${path:+$path }$word" ;;
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
    # @VALUES@
    *)
      case $path in
        # @COMMANDS@
      esac
      ;;
  esac
}
complete -F _escrowctl escrowctl
