package io.hintd.client;

import java.util.Objects;

/** An application attempt, as YARN names it: {@code application_1700000000000_0001}, attempts from 1. */
public final class Attempt {
  private final String applicationId;
  private final int number;

  public Attempt(String applicationId, int number) {
    this.applicationId = Objects.requireNonNull(applicationId, "applicationId");
    this.number = number;
  }

  public String applicationId() {
    return applicationId;
  }

  public int number() {
    return number;
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof Attempt
        && ((Attempt) other).number == number
        && ((Attempt) other).applicationId.equals(applicationId);
  }

  @Override
  public int hashCode() {
    return applicationId.hashCode() * 31 + number;
  }

  @Override
  public String toString() {
    return applicationId + "#" + number;
  }
}
