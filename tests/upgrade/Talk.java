import io.hintd.client.Answer;
import io.hintd.client.Attempt;
import io.hintd.client.Following;
import io.hintd.client.Group;
import io.hintd.client.HintRequest;
import io.hintd.client.HintdClient;
import io.hintd.client.HintdException;
import java.time.Duration;
import java.util.Collections;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;

/** As {@code talk.py client}, with the Java client whose jar is on the class path: {@code java -cp JAR Talk.java ADDRESS APPLICATION}. */
public final class Talk {
  public static void main(String[] args) throws Exception {
    Attempt attempt = new Attempt(args[1], 1);
    HintRequest request = new HintRequest(attempt).requestId("java-1").group(new Group("map", 3, 1024, 1));
    Duration patience = Duration.ofSeconds(60);
    try (HintdClient client = HintdClient.to(args[0])) {
      Answer first = client.requestHints(request, patience);
      Answer again = client.requestHints(request, patience);
      boolean same = again.decisionId().equals(first.decisionId()) && again.leases().equals(first.leases());
      say("\"step\": \"asked\", \"leases\": " + first.leases().size() + ", \"same\": " + same + ", \"decision\": \""
          + first.decisionId() + "\", \"token\": " + !first.token().isEmpty());
      boolean explained = client.explain(first.decisionId(), patience) != null;
      say("\"step\": \"explained\", \"answer\": " + explained);
      CompletableFuture<String> told = new CompletableFuture<>();
      Following.Listener listener =
          new Following.Listener() {
            @Override
            public void advice(io.hintd.v1.FollowMessage message) {
              if (!message.getCause().isEmpty()) {
                told.complete(message.getCause());
              }
            }

            @Override
            public void ended(HintdException why) {
              told.complete("ended: " + why);
            }
          };
      try (Following following = client.follow(attempt, first.token(), 0, listener)) {
        say("\"step\": \"following\", \"host\": \"" + first.hints().get(0).host() + "\"");
        say("\"step\": \"told\", \"cause\": \"" + told.get(60, TimeUnit.SECONDS) + "\"");
      }
      say("\"step\": \"released\", \"count\": "
          + client.release(attempt, first.token(), Collections.<Long>emptyList(), patience));
    }
  }

  private static void say(String fields) {
    System.out.println("{" + fields + "}");
  }
}
