package io.hintd.test;

import java.util.Arrays;
import org.apache.spark.SparkConf;
import org.apache.spark.api.java.JavaSparkContext;
import scala.Tuple2;

/** Counts words: a stage that reads, a shuffle, a stage that writes. */
public final class WordCount {
  private WordCount() {}

  /** Inputs with commas between them, output, tasks of each stage. */
  public static void main(String[] arguments) {
    int tasks = Integer.parseInt(arguments[2]);
    try (JavaSparkContext context = new JavaSparkContext(new SparkConf().setAppName("word count of spark"))) {
      context
          .textFile(arguments[0], tasks)
          .flatMap(line -> Arrays.asList(line.split("\\W+")).iterator())
          .mapToPair(word -> new Tuple2<>(word, 1L))
          // Each word travels: the shuffle is as large as the input.
          .groupByKey(tasks)
          .mapValues(ones -> { long sum = 0; for (long one : ones) { sum += one; } return sum; })
          .saveAsTextFile(arguments[1]);
    }
  }
}
