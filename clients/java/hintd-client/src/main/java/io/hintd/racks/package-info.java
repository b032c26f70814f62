/** Racks for Hadoop's {@code net.topology.node.switch.mapping.impl}, from hintd's network file. */
package io.hintd.racks;
