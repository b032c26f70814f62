package io.hintd.rm;

/** Keeps a daemon that fails from being asked, and one that is slow from being waited for. */
final class Breaker {
  /** Waits in vain, one after the other, after which nobody waits until an answer came. */
  private static final int SLOW = 5;

  private int failures;
  private int vain;
  private long openUntil;
  private long openFor;
  private boolean open;
  private boolean probing;

  /** Whether to ask now. While open: one caller when the time is over, to see. */
  synchronized boolean ask(long nowMs) {
    if (!open) {
      return true;
    }
    if (probing || nowMs < openUntil) {
      return false;
    }
    probing = true;
    return true;
  }

  /** Whether it is worth waiting for an answer. */
  synchronized boolean wait(Settings settings) {
    return settings.waitMs > 0 && !open && vain < SLOW;
  }

  /** Returns whether this closed it. */
  synchronized boolean answered() {
    boolean closes = open;
    failures = 0;
    open = false;
    probing = false;
    openFor = 0;
    return closes;
  }

  /** Returns whether this opened it. */
  synchronized boolean failed(Settings settings, long nowMs) {
    failures++;
    boolean opens = probing || (!open && failures >= settings.failures);
    if (opens) {
      openFor = openFor == 0 ? settings.openMs : Math.min(openFor * 2, settings.openMaxMs);
      openUntil = nowMs + openFor;
      open = true;
      probing = false;
    }
    return opens;
  }

  synchronized void waited(boolean inVain) {
    vain = inVain ? vain + 1 : 0;
  }

  /** An answer came at last: the next may be waited for again, once in a while. */
  synchronized void cameLate(boolean withinPatience) {
    if (withinPatience) {
      vain = 0;
    }
  }

  synchronized boolean isOpen() {
    return open;
  }
}
