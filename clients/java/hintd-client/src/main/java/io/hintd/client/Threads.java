package io.hintd.client;

import java.util.concurrent.ThreadFactory;

/** Threads that keep no process alive. */
final class Threads {
  private Threads() {}

  static ThreadFactory daemon(String name) {
    return work -> {
      Thread thread = new Thread(work, name);
      thread.setDaemon(true);
      return thread;
    };
  }
}
