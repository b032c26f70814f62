package io.hintd.rm;

/** What tasks of a priority do, in frameworks whose priorities are known. */
final class Roles {
  private Roles() {}

  /** Whether they read what other containers of the application leave on their nodes. */
  static boolean reads(String framework, int priority) {
    return of(framework, priority).equals("reduce");
  }

  /** The priority under which the framework asks for containers that read what others leave; -1: there is none. */
  static int readers(String framework) {
    return framework.equals("mapreduce") ? 10 : -1;
  }

  /** The priority under which the framework first asks for containers that read its input; -1: not known. */
  static int readInput(String framework) {
    return framework.equals("mapreduce") ? 20 : -1;
  }

  /** Empty: unknown. */
  static String of(String framework, int priority) {
    if (!framework.equals("mapreduce")) {
      return "";
    }
    // RMContainerAllocator: PRIORITY_FAST_FAIL_MAP, PRIORITY_REDUCE, PRIORITY_MAP, and opportunistic ones.
    switch (priority) {
      case 5:
      case 19:
      case 20:
        return "map";
      case 10:
        return "reduce";
      default:
        return "";
    }
  }
}
