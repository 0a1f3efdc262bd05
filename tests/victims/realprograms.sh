# Programs that people have, compared byte for byte: realprograms.sh DATA BIG LMDB WHICH
data=$1 big=$2
case $4 in
  bash)
    total=0
    for i in $(seq 300); do total=$((total + i)); done
    echo $total "$(echo nested $(echo deeper))"
    while read -r -n 7 word; do set -- "$word"; done < <(head -c 2000 "$data" | od -An -tx1)
    echo "$1"
    (trap 'echo term' TERM; kill -TERM $BASHPID; echo after)
    (exit 7) & wait $!; echo $?
    cat <<< "here" | tr a-z A-Z | tee >(cat > copy) | wc -c
    printf '%s\n' data/* | sort; ((kill -SEGV $BASHPID); echo $?) 2> /dev/null ;;
  perl)
    perl -e 'open my $f, "<:raw", $ARGV[0] or die; my ($n, $s) = (0, 0);
      while (read $f, my $b, 70001) { $n += length $b; $s = ($s + unpack("%32C*", $b)) % 65521 }
      print "$n $s\n"; seek $f, -9, 2; local $/; print unpack("H*", <$f>), "\n";
      my $p = open my $q, "-|", "cksum", $ARGV[0]; print <$q>; close $q; print "$?\n";
      for (1..5) { my $c = fork // die; exit $_ unless $c; waitpid $c, 0; print $? >> 8, "\n" }
      $SIG{SEGV} = sub { print "caught\n" }; kill SEGV => $$; $SIG{ALRM} = sub { die "late\n" };
      alarm 1; eval { select undef, undef, undef, 5 }; print $@' "$data" ;;
  python)
    /usr/bin/python3 - "$data" <<'PY'
import hashlib, json, mmap, os, shutil, sqlite3, sys, tempfile, threading, zlib, concurrent.futures
data = open(sys.argv[1], "rb").read()
print(hashlib.sha256(data).hexdigest(), zlib.crc32(data))
with open(sys.argv[1], "rb") as f, mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_COPY) as m:
    m[70000:70005] = b"hello"; print(m.find(b"hello"), m.rfind(b"hello"), len(m))
    m.madvise(mmap.MADV_WILLNEED); print(hashlib.md5(m).hexdigest())
with concurrent.futures.ThreadPoolExecutor(4) as pool:
    print(list(pool.map(lambda i: zlib.crc32(data[i * 99999:][:50000]), range(6))))
shutil.copy(sys.argv[1], "copy"); print(os.path.getsize("copy"))
db = sqlite3.connect("db"); db.execute("create table t(a, b)")
db.executemany("insert into t values(?, ?)", ((i, data[i * 100:i * 100 + 50]) for i in range(5000)))
db.commit(); print(db.execute("select count(*), sum(a), hex(b) from t where a > 100").fetchone())
db.execute("pragma mmap_size=100000000"); print(len(db.execute("select * from t").fetchall()))
print(sum(os.preadv(os.open("copy", 0), [bytearray(9)], 5) for _ in range(5)))
PY
    ;;
  sqlite)
    sqlite3 data/base.db "pragma mmap_size=268435456; create table t(a integer primary key, b text);
      with recursive c(i) as (select 1 union all select i+1 from c where i<60000)
      insert into t select i, hex(i*7919) || 'padding-padding' from c; create index x on t(b);
      select count(*), sum(length(b)) from t; vacuum; select * from t order by b limit 5;"
    sqlite3 data/base.db "pragma mmap_size=268435456; select max(b), avg(a) from t; pragma integrity_check;" ;;
  gcc)
    printf '#include <stdio.h>\n#include <math.h>\nint main(void){printf("%%.3f\\n",sqrt(2));return 0;}\n' > a.c
    gcc -O2 -c a.c && gcc a.o -o a -lm && ./a && cksum < a.o
    printf 'int main( { }\n' > b.c; gcc b.c 2>&1 | head -3 ;;
  java) java -version 2>&1 ;;
  git)
    export GIT_AUTHOR_DATE='2020-01-01T00:00:00Z' GIT_COMMITTER_DATE='2020-01-01T00:00:00Z'
    git -c init.defaultBranch=main init -q repo && cd repo || exit
    git config user.name a; git config user.email a@example.org
    for i in $(seq 60); do echo "file $i" > "f$i"; done; cp "$data" blob
    git add . && git commit -qm first && echo more >> f7 && rm f8
    git status --short; git log --oneline; git gc -q; git fsck --no-progress; git diff --stat; git cat-file -p HEAD:blob | cksum ;;
  tar)
    mkdir tree; for i in $(seq 50); do head -c $((i * 3000)) "$data" > tree/$i; done
    tar --sort=name --mtime=@0 --owner=0 --group=0 -cf - tree | gzip -n | tee a.tgz | gunzip | tar tf - | sort | cksum
    cksum < a.tgz; mkdir out; tar xzf a.tgz -C out && diff -r tree out/tree && echo same
    dd if="$big" bs=1M count=60 2>/dev/null | sha256sum; cmp "$data" "$data" && grep -c a "$data"; sort -S 5M "$data" | cksum ;;
  make)
    printf 'all: x1 x2 x3 x4 x5 x6\nx%%:\n\t@sleep 0.0$*; echo $@ > $@; cksum %s > c$@\nclean:\n\t@false\n' "$data" > Makefile
    make -j4 -s && cat x* cx* && make clean; echo $? ;;
  coreutils)
    wc "$data"; sha256sum "$data" "$big"; tail -c 100 "$data" | od -c | head -4; split -b 1M -d "$data" part. ; ls part.* ; cat part.* | cmp - "$data"; head -c 3M "$data" | base64 | md5sum; xxd "$data" 2>/dev/null | head -3; find . -type f -size +500k | sort | head; cp --reflink=auto "$data" c && cmp c "$data"; shuf -i 1-5 --random-source="$data"; join <(seq 5) <(seq 3 8); du -b c; stat -c %s c; truncate -s 5 c; cat c | od -x ;;
esac
