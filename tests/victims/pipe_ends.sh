# `job | cat` ends when the job ends: nothing that the job leaves behind may hold the pipe.
job="/usr/bin/python3 -c 'import mmap,sys; f=open(sys.argv[1],\"rb\"); print(sum(mmap.mmap(f.fileno(),0,access=1)[::64]))'"
for i in 1 2 3; do
  timeout 10 bash -c "$job $1 | cat" || echo "status $?"
  timeout 10 bash -c "out=\$($job $1); echo \$out"  || echo "status $?"
  timeout 10 bash -c "$job $1 2>&1 >/dev/null | grep -v ^sluice: | wc -l" || echo "status $?"
done
# No child that this shell did not start, and none that it cannot wait for.
wait
jobs
echo "children: $(ps --no-headers -o comm --ppid $$ | grep -vc '^ps$')"
