package io.hintd.client;

/** A call that brought no answer. */
public class HintdException extends Exception {
  HintdException(String message, Throwable cause) {
    super(message, cause);
  }

  /** The daemon said no; asking the same again does not help. */
  public static final class Refused extends HintdException {
    private final String code;
    private final String reason;
    private final String field;

    Refused(String code, String message, String reason, String field, Throwable cause) {
      super(code + ": " + message, cause);
      this.code = code;
      this.reason = reason;
      this.field = field;
    }

    /** gRPC's code, as {@code INVALID_ARGUMENT}. */
    public String code() {
      return code;
    }

    /** The daemon's stable token: {@code invalid}, {@code unknown}, {@code full}, {@code id_reused}, ...; or empty. */
    public String reason() {
      return reason;
    }

    /** The part of the request that is wrong; empty where there is none. */
    public String field() {
      return field;
    }
  }

  /** No answer within the caller's patience: not reachable, overloaded, or slow. */
  public static final class OutOfTime extends HintdException {
    OutOfTime(long waitedNanos, String last, Throwable cause) {
      super(String.format("no answer in %.3f s: %s", waitedNanos / 1e9, last), cause);
    }
  }
}
