package io.hintd.mini;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.Socket;
import org.apache.hadoop.net.StandardSocketFactory;

/**
 * Hadoop's RPC from a node's own loopback address: the NameNode tells DataNodes, and a reader's rack, by where a
 * connection comes from.
 */
public class OwnAddress extends StandardSocketFactory {
  @Override
  public Socket createSocket() throws IOException {
    Socket socket = super.createSocket();
    // Servers are told by a property, containers by their NodeManager.
    String own = System.getProperty("mini.address", System.getenv("NM_HOST"));
    if (own != null) {
      socket.bind(new InetSocketAddress(own, 0));
    }
    return socket;
  }

  @Override
  public boolean equals(Object other) {
    return other != null && other.getClass() == getClass();
  }

  @Override
  public int hashCode() {
    return getClass().hashCode();
  }
}
