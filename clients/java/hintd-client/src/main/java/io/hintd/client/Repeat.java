package io.hintd.client;

import io.grpc.Metadata;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;

/** Repeating a call that the daemon could not take: with jitter, and never past the caller's patience. */
final class Repeat {
  static final long FIRST_PAUSE = TimeUnit.MILLISECONDS.toNanos(10);
  static final long LONGEST_PAUSE = TimeUnit.SECONDS.toNanos(1);

  private Repeat() {}

  interface Call<T> {
    T with(long leftNanos);
  }

  /** Only UNAVAILABLE is tried again. */
  static <T> T until(long patienceNanos, Call<T> call) throws HintdException {
    long began = System.nanoTime();
    long pause = FIRST_PAUSE;
    while (true) {
      long left = patienceNanos - (System.nanoTime() - began);
      try {
        return call.with(Math.max(left, TimeUnit.MILLISECONDS.toNanos(1)));
      } catch (StatusRuntimeException error) {
        if (error.getStatus().getCode() != Status.Code.UNAVAILABLE) {
          throw of(error, System.nanoTime() - began);
        }
        long wait = jittered(Math.max(pause, askedFor(error)));
        if (System.nanoTime() - began + wait >= patienceNanos) {
          throw new HintdException.OutOfTime(System.nanoTime() - began, described(error), error);
        }
        pause(wait, error, began);
        pause = Math.min(pause * 2, LONGEST_PAUSE);
      }
    }
  }

  /** What gRPC's error means. */
  static HintdException of(StatusRuntimeException error, long waited) {
    Status.Code code = error.getStatus().getCode();
    if (code == Status.Code.DEADLINE_EXCEEDED || code == Status.Code.UNAVAILABLE) {
      return new HintdException.OutOfTime(waited, described(error), error);
    }
    return new HintdException.Refused(
        code.name(), described(error), told(error, "hintd-reason"), told(error, "hintd-field"), error);
  }

  /** Nanoseconds that the daemon asked to wait. */
  static long askedFor(StatusRuntimeException error) {
    String told = told(error, "retry-after-ms");
    return told.matches("\\d{1,9}")
        ? Math.min(TimeUnit.MILLISECONDS.toNanos(Long.parseLong(told)), LONGEST_PAUSE)
        : 0;
  }

  /** Once to one and a half times as long: clients sent away together do not come back together. */
  static long jittered(long pause) {
    return pause + (long) (pause * ThreadLocalRandom.current().nextDouble() / 2);
  }

  private static void pause(long nanos, StatusRuntimeException last, long began) throws HintdException {
    try {
      TimeUnit.NANOSECONDS.sleep(nanos);
    } catch (InterruptedException stopped) {
      Thread.currentThread().interrupt();
      throw new HintdException.OutOfTime(System.nanoTime() - began, "interrupted: " + described(last), stopped);
    }
  }

  private static String described(StatusRuntimeException error) {
    String description = error.getStatus().getDescription();
    return description == null ? error.getStatus().getCode().name() : description;
  }

  private static String told(StatusRuntimeException error, String key) {
    Metadata trailers = error.getTrailers();
    String value = trailers == null ? null : trailers.get(Metadata.Key.of(key, Metadata.ASCII_STRING_MARSHALLER));
    return value == null ? "" : value;
  }
}
