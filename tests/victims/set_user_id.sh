# A set-user-ID program must just run, whatever LD_PRELOAD says.
[ "$(id -u)" = 0 ] || { echo "making a set-user-ID program needs root"; exit 77; }
work=$(mktemp -d /tmp/sv-suid.XXXXXX)
trap 'rm -rf "$work"' EXIT
chmod 755 "$work"
cp "$4" "$1" "$work"
chmod 4755 "$work/$(basename "$4")"
chmod 644 "$work/scan.bin"
mount_flags=$(findmnt -no OPTIONS -T "$work")
case $mount_flags in *nosuid*) echo "/tmp ignores set-user-ID"; exit 77 ;; esac
setpriv --reuid=65534 --regid=65534 --clear-groups "$work/$(basename "$4")" "$work/scan.bin"
echo "status $?"
setpriv --reuid=65534 --regid=65534 --clear-groups --no-new-privs "$work/$(basename "$4")" "$work/scan.bin"
echo "status $?"
