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
    // The attempt's or task's folder, whatever lies between, is what its files' final folders begin below.
    int below = Math.max(written.lastIndexOf("/attempt_"), written.lastIndexOf("/task_"));
    int end = below < at ? -1 : written.indexOf('/', below + 1);
    return end < 0 ? written.substring(0, at) : written.substring(0, at) + written.substring(end);
  }
}
