package io.hintd.hdfs;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hintd.hdfs.Settings.Mode;
import java.io.IOException;
import java.io.StringReader;
import java.util.Properties;
import org.junit.jupiter.api.Test;

/** Which files are asked for, and by which path. */
class PathsTest {
  @Test
  void whatIsWrittenElsewhereFirstHasThePathThatItWillHave() {
    String[][] paths = {
      {"/in/_temporary/1/_temporary/attempt_17_0001_m_000003_0/part-m-00003", "/in/part-m-00003"},
      {"/in/_temporary/0/_temporary/attempt_2026_0001_m_000003_7/day=1/part-00003", "/in/day=1/part-00003"},
      {"/in/_temporary/1/task_17_0001_m_000003/part-m-00003", "/in/part-m-00003"},
      {"/in/_temporary/1/_temporary/attempt_1/task_id=9/part-0", "/in/task_id=9/part-0"},
      {"/in/_temporary/1/_temporary/attempt_1/attempt_2/part-0", "/in/attempt_2/part-0"},
      {"/in/_temporary/1/task_17_0001_m_000003/task_id=9/part-0", "/in/task_id=9/part-0"},
      {"/in/_temporary/1/_temporary/attempt_1", "/in"},
      {"/in/_temporary/1/_temporary/x/attempt_1=2", "/in"},
      {"/in/_temporary/1/x/attempt_1/part-0", "/in"},
      {"/in/_temporary/1", "/in"},
      {"/in/_temporary/1/x", "/in"},
      {"/attempt_1/in/_temporary/1/x", "/attempt_1/in"},
      {"/in/x._COPYING_", "/in/x"},
      {"/in/attempt_1/x", "/in/attempt_1/x"},
      {"/in/x", "/in/x"},
      {"/", "/"},
    };
    for (String[] path : paths) {
      assertEquals(path[1], FinalPath.of(path[0]), path[0]);
    }
  }

  @Test
  void markersHiddenFilesAndFoldersThatAreLeftOutAreNotAskedFor() throws IOException {
    Settings all = of("");
    assertEquals(Mode.SHADOW, all.mode, "it starts in shadow");
    for (String path : new String[] {"/in/part-m-00003", "/tmpx/a", "/a_b/c"}) {
      assertTrue(all.concerns(path), path);
    }
    for (String path : new String[] {"/tmp/a", "/in/_SUCCESS", "/user/ann/.staging/job_1/job.jar", "/mr-history/x"}) {
      assertFalse(all.concerns(path), path);
    }
    Settings some = of("paths=/warehouse/, /in\nskip=/warehouse/stage");
    assertTrue(some.concerns("/warehouse/t/x") && some.concerns("/in/x") && some.concerns("/in"));
    assertFalse(some.concerns("/warehouse/stage/x") || some.concerns("/inn/x") || some.concerns("/out/x"));
  }

  @Test
  void everyWrongKeyIsNamed() {
    String wrong =
        assertThrows(IllegalArgumentException.class, () -> of("mode=yes\ntimeout-ms=-1\npaths=in\ncash=3")).getMessage();
    for (String key : new String[] {"mode=yes: none of off, shadow, on", "timeout-ms=-1", "paths=in", "cash:"}) {
      assertTrue(wrong.contains(key), wrong);
    }
  }

  private static Settings of(String text) throws IOException {
    Properties properties = new Properties();
    properties.load(new StringReader(text));
    return Settings.of(properties);
  }
}
