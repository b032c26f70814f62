package io.hintd.plugin;

import java.lang.management.ManagementFactory;
import javax.management.JMException;
import javax.management.MBeanServer;
import javax.management.ObjectName;

/** Counters on a Hadoop process's {@code /jmx} page. */
public final class Jmx {
  private Jmx() {}

  /** Shows them; a second bean of a name takes the first one's place. */
  public static void register(Object counters, String name) {
    try {
      MBeanServer server = ManagementFactory.getPlatformMBeanServer();
      ObjectName bean = new ObjectName("hintd:name=" + name);
      if (server.isRegistered(bean)) {
        server.unregisterMBean(bean);
      }
      server.registerMBean(counters, bean);
    } catch (JMException none) {
      throw new IllegalStateException("can't be shown by JMX", none);
    }
  }
}
