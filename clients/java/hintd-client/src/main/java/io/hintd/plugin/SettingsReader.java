package io.hintd.plugin;

import java.util.Properties;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.function.Function;

/** Reads keys of a properties file, and notes all that is wrong, to be told at once by {@link #finish}. */
public final class SettingsReader {
  private final TreeMap<String, String> left = new TreeMap<>();
  private final TreeSet<String> wrong = new TreeSet<>();

  /** Of these lines. */
  public SettingsReader(Properties properties) {
    properties.stringPropertyNames().forEach(name -> left.put(name, properties.getProperty(name).trim()));
  }

  /** Its text, or the default where it is missing or empty. */
  public String text(String key, String otherwise) {
    String value = left.remove(key);
    return value == null || value.isEmpty() ? otherwise : value;
  }

  /** A whole number within bounds. */
  public long number(String key, long otherwise, long least, long most) {
    String value = text(key, Long.toString(otherwise));
    try {
      long number = Long.parseLong(value);
      if (number >= least && number <= most) {
        return number;
      }
    } catch (NumberFormatException none) {
      // told below
    }
    wrong.add(key + "=" + value + ": not a whole number from " + least + " to " + most);
    return otherwise;
  }

  /** True or false. */
  public boolean flag(String key, boolean otherwise) {
    String value = text(key, Boolean.toString(otherwise));
    if (!value.equals("true") && !value.equals("false")) {
      wrong.add(key + "=" + value + ": neither true nor false");
    }
    return value.equals("true");
  }

  /** One of the words of an enumeration, however written. */
  public <E extends Enum<E>> E word(String key, E otherwise) {
    String value = text(key, otherwise.name());
    StringBuilder words = new StringBuilder();
    for (E word : otherwise.getDeclaringClass().getEnumConstants()) {
      if (word.name().equalsIgnoreCase(value)) {
        return word;
      }
      words.append(words.length() == 0 ? "" : ", ").append(word.name().toLowerCase(java.util.Locale.ROOT));
    }
    wrong.add(key + "=" + value + ": none of " + words);
    return otherwise;
  }

  /** All keys with that beginning, without it, each read by {@code read} from its whole key. */
  public <T> TreeMap<String, T> each(String beginning, Function<String, T> read) {
    TreeMap<String, T> found = new TreeMap<>();
    for (String key : new TreeSet<>(left.keySet())) {
      if (key.startsWith(beginning)) {
        found.put(key.substring(beginning.length()), read.apply(key));
      }
    }
    return found;
  }

  /** Notes something else that is wrong. */
  public void wrong(String what) {
    wrong.add(what);
  }

  /**
   * To be called after all keys were read.
   *
   * @throws IllegalArgumentException naming every key that is wrong or unknown
   */
  public void finish() {
    left.keySet().forEach(key -> wrong.add(key + ": no such key"));
    if (!wrong.isEmpty()) {
      throw new IllegalArgumentException(String.join("; ", wrong));
    }
  }
}
