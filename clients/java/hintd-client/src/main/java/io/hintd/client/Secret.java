package io.hintd.client;

import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.SecureRandom;
import java.util.Arrays;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

/**
 * What a client is known by: nonces of applications follow from it. Who has the same secret is the same client to the
 * daemon: a later process of an application's, or a standby that takes over.
 */
public final class Secret {
  /** Fewest bytes: fewer can be guessed. */
  public static final int LEAST_BYTES = 16;

  private static final int NONCE_BYTES = 16;
  private static final String MAC = "HmacSHA256";

  private final SecretKeySpec key;

  private Secret(byte[] bytes) {
    key = new SecretKeySpec(bytes, MAC);
  }

  /** One that nobody else has. */
  public static Secret random() {
    byte[] bytes = new byte[32];
    new SecureRandom().nextBytes(bytes);
    return new Secret(bytes);
  }

  /** One that is kept somewhere, of {@link #LEAST_BYTES} or more. */
  public static Secret of(byte[] bytes) {
    if (bytes.length < LEAST_BYTES) {
      throw new IllegalArgumentException("a secret has " + LEAST_BYTES + " bytes or more, not " + bytes.length);
    }
    return new Secret(bytes);
  }

  /** The first bytes of HMAC-SHA256 of the id under the secret, as every language's client has it. */
  byte[] nonce(String applicationId) {
    try {
      Mac mac = Mac.getInstance(MAC);
      mac.init(key);
      return Arrays.copyOf(mac.doFinal(applicationId.getBytes(StandardCharsets.UTF_8)), NONCE_BYTES);
    } catch (GeneralSecurityException none) {
      throw new IllegalStateException("every Java has " + MAC, none);
    }
  }

  @Override
  public String toString() {
    return "Secret(...)";
  }
}
