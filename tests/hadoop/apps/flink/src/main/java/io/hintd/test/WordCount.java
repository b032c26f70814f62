package io.hintd.test;

import java.util.Arrays;
import org.apache.flink.api.common.RuntimeExecutionMode;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.serialization.SimpleStringEncoder;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.connector.file.sink.FileSink;
import org.apache.flink.connector.file.src.FileSource;
import org.apache.flink.connector.file.src.reader.TextLineInputFormat;
import org.apache.flink.core.fs.Path;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.util.Collector;

/** Counts words in a batch: tasks that read, a shuffle, tasks that write. */
public final class WordCount {
  private WordCount() {}

  /** Inputs with commas between them, output, parallelism. */
  public static void main(String[] arguments) throws Exception {
    StreamExecutionEnvironment environment = StreamExecutionEnvironment.getExecutionEnvironment();
    environment.setRuntimeMode(RuntimeExecutionMode.BATCH);
    environment.setParallelism(Integer.parseInt(arguments[2]));
    Path[] paths = Arrays.stream(arguments[0].split(",")).map(Path::new).toArray(Path[]::new);
    FileSource<String> lines =
        FileSource.forRecordStreamFormat(new TextLineInputFormat(), paths).build();
    environment
        .fromSource(lines, WatermarkStrategy.noWatermarks(), "lines")
        .flatMap(
            (String line, Collector<Tuple2<String, Long>> out) -> {
              for (String word : line.split("\\W+")) {
                out.collect(Tuple2.of(word, 1L));
              }
            })
        .returns(Types.TUPLE(Types.STRING, Types.LONG))
        .keyBy(pair -> pair.f0)
        .sum(1)
        .map(pair -> pair.f0 + "\t" + pair.f1)
        .sinkTo(FileSink.forRowFormat(new Path(arguments[1]), new SimpleStringEncoder<String>()).build());
    environment.execute("word count of flink");
  }
}
