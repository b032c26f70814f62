package io.hintd.plugin;

import java.util.concurrent.atomic.AtomicLongArray;

/** Durations, to within a sixteenth, without locks. */
public final class Histogram {
  private static final int STEPS = 16;
  private final AtomicLongArray buckets = new AtomicLongArray(64 * STEPS);

  /** One more. */
  public void add(long nanos) {
    buckets.incrementAndGet(bucket(Math.max(nanos, 1)));
  }

  /** How many. */
  public long count() {
    long sum = 0;
    for (int i = 0; i < buckets.length(); i++) {
      sum += buckets.get(i);
    }
    return sum;
  }

  /** Microseconds that this share of the durations did not exceed; 0: there are none. */
  public double quantile(double share) {
    long before = (long) Math.ceil(count() * share);
    long sum = 0;
    for (int i = 0; before > 0 && i < buckets.length(); i++) {
      sum += buckets.get(i);
      if (sum >= before) {
        return upper(i) / 1e3;
      }
    }
    return 0;
  }

  /** Microseconds that half, 99 % and 99.9 % of the durations did not exceed. */
  public double[] quantiles() {
    return new double[] {quantile(0.5), quantile(0.99), quantile(0.999)};
  }

  /** Forgets them. */
  public void clear() {
    for (int i = 0; i < buckets.length(); i++) {
      buckets.set(i, 0);
    }
  }

  private static int bucket(long nanos) {
    int power = 63 - Long.numberOfLeadingZeros(nanos);
    int step = power < 4 ? (int) (nanos << (4 - power)) & 15 : (int) (nanos >>> (power - 4)) & 15;
    return power * STEPS + step;
  }

  private static double upper(int bucket) {
    return Math.scalb(1.0 + (bucket % STEPS + 1) / (double) STEPS, bucket / STEPS);
  }
}
