# Unmounting right after the job: once it has exited, nothing may hold its file system.
[ "$(id -u)" = 0 ] || { echo "mounting needs root"; exit 77; }
image=$PWD/image
place=$PWD/data/mounted
mkdir -p "$place"
dd if=/dev/zero of="$image" bs=1M count=40 status=none
/sbin/mkfs.ext4 -q "$image" 2>/dev/null || { echo "mkfs.ext4 is not here"; exit 77; }
for round in 1 2 3 4 5; do
  LD_PRELOAD='' mount -o loop "$image" "$place" || { echo "loop devices do not work here"; exit 77; }
  [ -e "$place/file" ] || cp "$1" "$place/file"
  /usr/bin/python3 - "$place/file" <<'PY'
import mmap, os, sys
with open(sys.argv[1], "rb") as file:
    view = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    print(sum(view[::4096]), len(file.read()))
if os.fork() == 0:
    print(sum(view[1::4096]), flush=True)
    os._exit(0)
os.wait()
PY
  # Unhooked, so that the very next system call after the job's end is the umount.
  LD_PRELOAD='' umount "$place" || { echo "round $round: busy"; LD_PRELOAD='' umount -l "$place"; }
done
