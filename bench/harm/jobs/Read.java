import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.util.List;
import java.util.StringJoiner;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** Read DATA SCRATCH EPOCHS: digests all files of DATA, every second one through a mapping, each epoch. */
public class Read {
  public static void main(String[] arguments) throws Exception {
    MessageDigest digest = MessageDigest.getInstance("SHA-256");
    StringJoiner seconds = new StringJoiner(", ");
    for (int epoch = 0; epoch < Integer.parseInt(arguments[2]); ++epoch) {
      long started = System.nanoTime();
      List<Path> paths;
      try (Stream<Path> found = Files.list(Path.of(arguments[0]))) {
        paths = found.sorted().collect(Collectors.toList());
      }
      for (int i = 0; i < paths.size(); ++i) {
        if (i % 2 == 0) {
          digest.update(Files.readAllBytes(paths.get(i)));
          continue;
        }
        try (FileChannel channel = FileChannel.open(paths.get(i))) {
          ByteBuffer mapped = channel.map(FileChannel.MapMode.READ_ONLY, 0, channel.size());
          digest.update(mapped);
        }
      }
      seconds.add(String.valueOf((System.nanoTime() - started) / 1e9));
    }
    StringBuilder hex = new StringBuilder();
    for (byte one : digest.digest()) hex.append(String.format("%02x", one));
    System.out.println("{\"epochs\": [" + seconds + "], \"digest\": \"" + hex + "\"}");
  }
}
