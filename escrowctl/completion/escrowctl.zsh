#compdef escrowctl
# zsh completion for escrowctl: static, made by `escrowctl completion zsh`.
# TAB starts no program. Names in the cache may come from a service: they are compared, never expanded.
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
  setopt local_options extended_glob
  local file line
  local -a names
  integer n=0
  _escrowctl_find "$1" || return 1
  while (( n++ < 500 )) && IFS= read -r line; do
    [[ -n $2 ]] && line=${line% released}
    (( ${#line} <= 128 )) && [[ $line == [A-Za-z0-9_][A-Za-z0-9_-]# ]] && names+=("$line")
  done <"$file"
  (( $#names )) && compadd -V recent -- $names
}
_escrowctl() {
  setopt local_options extended_glob
  local path_ skip word i only file option=${words[CURRENT - 1]} scope=${ESCROWCTL_PROFILE:-@default}
  local -a commands flags
  for ((i = 2; i < CURRENT; i++)); do
    word=${words[i]}
    if [[ -n $skip ]]; then
      [[ $skip == profile ]] && scope=$word
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
        case "${path_:+$path_ }$word" in
          @PATHS@) path_="${path_:+$path_ }$word" ;;
        esac ;;
    esac
  done
  [[ $scope == @default && -z $ESCROWCTL_BASE_URL ]] && _escrowctl_find default && IFS= read -r scope <"$file"
  [[ $scope == (@|)[A-Za-z0-9_-]## ]] || scope=@default
  if [[ $PREFIX == --*=* ]]; then
    option=${PREFIX%%=*}
    compset -P '*='
  fi
  [[ -n $only ]] && option=
  case $option in
    # @VALUES@
  esac
  case $path_ in
    # @COMMANDS@
  esac
  [[ -n $only ]] && return
  _describe command commands
  _describe -o option flags
}
# Loaded by autoload, this file is the body of the function; sourced, it registers itself.
if [[ $funcstack[1] == _escrowctl ]]; then _escrowctl "$@"; else compdef _escrowctl escrowctl; fi
