# gdb runs the job in batch mode; its own notes about threads and addresses are left out.
gdb -nx -q -batch -ex "set confirm off" -ex "set startup-with-shell off" \
  -ex "handle SIGSEGV nostop noprint pass" -ex run -ex "info program" \
  --args "$4" "$1" "$2" "$3" 2>/dev/null | grep -E '^[0-9a-f]{16}$|exited|not being run' |
  sed 's/process [0-9]*/process N/'
