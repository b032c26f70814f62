package io.hintd.hdfs;

/** The path that a file has when its writer is done: committers and shells write elsewhere first and rename. */
final class FinalPath {
  private static final String TEMPORARY = "/_temporary/";
  private static final String COPYING = "._COPYING_";

  private FinalPath() {}

  /**
   * {@code /in/_temporary/1/_temporary/attempt_1_0001_m_000003_0/part-m-00003} → {@code /in/part-m-00003}; {@code
   * /in/x._COPYING_} → {@code /in/x}; any other stays.
   */
  static String of(String path) {
    String written = path.endsWith(COPYING) ? path.substring(0, path.length() - COPYING.length()) : path;
    int at = written.indexOf(TEMPORARY);
    if (at < 0) {
      return written;
    }
    // What follows the last one is the attempt's folder, or a number and then the task's: files' final folders begin below it.
    // Folders further down are the data's own, whatever their names.
    int below = written.lastIndexOf(TEMPORARY) + TEMPORARY.length() - 1;
    if (!isOfTask(written, below)) {
      below = written.indexOf('/', below + 1);
    }
    int end = below >= 0 && isOfTask(written, below) ? written.indexOf('/', below + 1) : -1;
    return end < 0 ? written.substring(0, at) : written.substring(0, at) + written.substring(end);
  }

  private static boolean isOfTask(String path, int slash) {
    return path.startsWith("/attempt_", slash) || path.startsWith("/task_", slash);
  }
}
