# fish completion for escrowctl: static, made by `escrowctl completion fish`.
# TAB starts no program. Names in the cache may come from a service: they are compared, never expanded.
function __escrowctl_cached --description 'names of a kind from the cache'
    set -l file "$XDG_CACHE_HOME/escrowctl"
    test -n "$XDG_CACHE_HOME"; or set file ~/.cache/escrowctl
    test -d ~/Library/Caches; and set file ~/Library/Caches/escrowctl
    test -n "$ESCROWCTL_HOME"; and set file $ESCROWCTL_HOME/cache
    set file $file/complete/$argv[1]
    test -f $file -a -r $file; or return
    set -l mark
    test -n "$argv[2]"; and set mark '( released)?'
    set -l names (string replace -rf "^([A-Za-z0-9_][A-Za-z0-9_-]{0,127})$mark\$" '$1' <$file)
    test -n "$names[1]"; and printf '%s\n' $names[1..500]
end
function __escrowctl_recent --description 'ids seen at the service of the command line'
    set -l scope @default
    test -n "$ESCROWCTL_PROFILE"; and set scope $ESCROWCTL_PROFILE
    set -l named
    for word in (commandline -opc)
        if test -n "$named"
            set scope $word
            set named
            continue
        end
        switch $word
            case -p --profile
                set named yes
            case '--profile=*'
                set scope (string replace -- --profile= '' $word)
            case --sandbox
                set scope @sandbox
        end
    end
    if test "$scope" = @default -a -z "$ESCROWCTL_BASE_URL"
        set scope (__escrowctl_cached default) @default
    end
    string match -qr '^@?[A-Za-z0-9_-]+$' -- "$scope[1]"; or return
    __escrowctl_cached $scope[1]/$argv[1] $argv[2]
end
function __escrowctl_in_journal --description 'names in the journal of the command line'
    set -l scope @default
    contains -- --sandbox (commandline -opc); and set scope @sandbox
    __escrowctl_cached $scope/$argv[1]
end
function __escrowctl_at --description 'whether the command line is at this command'
    set -l path
    set -l skip
    for word in (commandline -opc)[2..-1]
        if test -n "$skip"
            set skip
            continue
        end
        switch $word
            case @VALUED@
                set skip yes
            case '-*'
            case '*'
                set -l longer (string join " " $path $word)
                if contains -- $longer @PATHS@
                    set path $path $word
                end
        end
    end
    test "$path" = "$argv"
end
complete -c escrowctl -f
# @COMMANDS@
