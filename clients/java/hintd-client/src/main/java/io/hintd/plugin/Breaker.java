package io.hintd.plugin;

/** Keeps a daemon that fails from being asked, and one that is slow from being waited for. */
public final class Breaker {
  /** What opens it, and for how long. */
  public static final class Limits {
    private final long waitMs;
    private final int failures;
    private final long openMs;
    private final long openMaxMs;

    /** Waits of at most {@code waitMs}; so many failures in a row open it, for {@code openMs} at first, then twice as long. */
    public Limits(long waitMs, int failures, long openMs, long openMaxMs) {
      this.waitMs = waitMs;
      this.failures = failures;
      this.openMs = openMs;
      this.openMaxMs = openMaxMs;
    }

    /** As a file of settings has them. */
    public static Limits read(SettingsReader from, long waitMs) {
      int failures = (int) from.number("breaker-failures", 3, 1, 1_000);
      long openMs = from.number("breaker-open-ms", 5_000, 1, 3_600_000);
      return new Limits(waitMs, failures, openMs, from.number("breaker-open-max-ms", 60_000, 1, 3_600_000));
    }
  }

  /** Waits in vain, one after the other, after which nobody waits until an answer came. */
  private static final int SLOW = 5;

  private int failures;
  private int vain;
  private long openUntil;
  private long openFor;
  private boolean open;
  private boolean probing;

  /** Whether to ask now. While open: one caller when the time is over, to see. */
  public synchronized boolean ask(long nowMs) {
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
  public synchronized boolean wait(Limits settings) {
    return settings.waitMs > 0 && !open && vain < SLOW;
  }

  /** Returns whether this closed it. */
  public synchronized boolean answered() {
    boolean closes = open;
    failures = 0;
    open = false;
    probing = false;
    openFor = 0;
    return closes;
  }

  /** Returns whether this opened it. */
  public synchronized boolean failed(Limits settings, long nowMs) {
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

  /** Somebody waited. */
  public synchronized void waited(boolean inVain) {
    vain = inVain ? vain + 1 : 0;
  }

  /** An answer came at last: the next may be waited for again, once in a while. */
  public synchronized void cameLate(boolean withinPatience) {
    if (withinPatience) {
      vain = 0;
    }
  }

  /** Whether nobody asks for the moment. */
  public synchronized boolean isOpen() {
    return open;
  }
}
