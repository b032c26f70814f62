/**
 * What hintd's plug-ins of Hadoop processes share: settings from a file that is read again, a breaker, durations, JMX. Nothing
 * here knows YARN or HDFS; slf4j is the process's own.
 */
package io.hintd.plugin;
