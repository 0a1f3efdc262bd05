// A JVM reads a mapped file through FileChannel.map; its own SIGSEGV handler makes null checks and
// safepoints of faults, and a SIGBUS past the end of the file an InternalError.
import java.io.RandomAccessFile;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.zip.CRC32;

public class Mapped {
  static int nullChecks;

  static int lengthOf(String text) {
    return text.length();
  }

  public static void main(String[] arguments) throws Exception {
    try (FileChannel channel = FileChannel.open(Path.of(arguments[0]), StandardOpenOption.READ)) {
      MappedByteBuffer map = channel.map(FileChannel.MapMode.READ_ONLY, 0, channel.size());
      CRC32 crc = new CRC32();
      crc.update(map.duplicate());
      System.out.println(channel.size() + " " + Long.toHexString(crc.getValue()));
      long sum = 0;
      for (int round = 0; round < 200000; round++) {
        sum += map.get(round * 61 % map.capacity());
        try {
          sum += lengthOf(round % 10 == 0 ? null : "text");
        } catch (NullPointerException expected) {
          nullChecks++;
        }
      }
      System.out.println(sum + " " + nullChecks);
      Thread[] threads = new Thread[4];
      long[] sums = new long[4];
      for (int t = 0; t < 4; t++) {
        final int me = t;
        threads[t] = new Thread(() -> {
          for (int i = me; i < map.capacity(); i += 997) sums[me] += map.get(i);
          byte[][] garbage = new byte[100][];
          for (int i = 0; i < 2000; i++) garbage[i % 100] = new byte[10000];
        });
        threads[t].start();
      }
      for (int t = 0; t < 4; t++) {
        threads[t].join();
        System.out.println(sums[t]);
      }
    }
    try (RandomAccessFile file = new RandomAccessFile("data/shrinks", "rw")) {
      file.setLength(1 << 20);
      MappedByteBuffer map = file.getChannel().map(FileChannel.MapMode.READ_ONLY, 0, 1 << 20);
      file.setLength(4096);
      try {
        System.out.println(map.get(1 << 19));
      } catch (InternalError expected) {
        System.out.println("InternalError");
      }
    }
  }
}
