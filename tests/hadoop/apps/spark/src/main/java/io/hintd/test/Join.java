package io.hintd.test;

import org.apache.spark.SparkConf;
import org.apache.spark.api.java.JavaPairRDD;
import org.apache.spark.api.java.JavaSparkContext;
import scala.Tuple2;

/** Joins the lines of two files by their first word and groups what came of it by its last: two shuffles of all bytes. */
public final class Join {
  private Join() {}

  /** Left input, right input, output, tasks of each stage. */
  public static void main(String[] arguments) {
    int tasks = Integer.parseInt(arguments[3]);
    try (JavaSparkContext context = new JavaSparkContext(new SparkConf().setAppName("join of spark"))) {
      byFirst(context, arguments[0], tasks)
          .join(byFirst(context, arguments[1], tasks), tasks)
          .values()
          .mapToPair(both -> new Tuple2<>(both._1.substring(both._1.lastIndexOf(' ') + 1), both._1 + both._2))
          .groupByKey(tasks)
          .mapValues(lines -> { long bytes = 0; for (String line : lines) { bytes += line.length(); } return bytes; })
          .saveAsTextFile(arguments[2]);
    }
  }

  private static JavaPairRDD<String, String> byFirst(JavaSparkContext context, String input, int tasks) {
    return context.textFile(input, tasks).mapToPair(line -> new Tuple2<>(line.substring(0, line.indexOf(' ')), line));
  }
}
