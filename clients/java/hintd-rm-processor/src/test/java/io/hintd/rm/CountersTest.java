package io.hintd.rm;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.management.ManagementFactory;
import javax.management.MBeanServer;
import javax.management.ObjectName;
import org.junit.jupiter.api.Test;

/** What the bean shows of the processor itself, which hintd's doctor looks at. */
class CountersTest {
  @Test
  void theVersionIsThatOfTheJarAndStandsInTheBean() throws Exception {
    Counters counters = new Counters();
    assertTrue(counters.getVersion().matches("\\d+\\.\\d+\\.\\d+.*"), counters.getVersion());
    counters.register();
    MBeanServer beans = ManagementFactory.getPlatformMBeanServer();
    ObjectName name = new ObjectName("hintd:name=RmProcessor");
    assertEquals(counters.getVersion(), beans.getAttribute(name, "Version"));
  }

  @Test
  void delaysAreThoseOfTheSchedulerAndAnotherOneHasNone() throws Exception {
    Counters counters = new Counters();
    assertEquals("{}", counters.getDelays().toString());
    try (RealYarn yarn = new RealYarn()) {
      counters.delays(yarn.cluster::delays);
      assertEquals(20L, counters.getDelays().get("rack_locality_additional_delay"));
      assertEquals(40L, counters.getDelays().get("node_locality_delay"), "the scheduler's default");
    }
    counters.delays(
        () -> {
          throw new NoSuchMethodError("of another YARN");
        });
    assertEquals("{}", counters.getDelays().toString());
  }
}
