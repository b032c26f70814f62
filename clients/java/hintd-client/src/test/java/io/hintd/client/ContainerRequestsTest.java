package io.hintd.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hintd.v1.HintSet;
import io.hintd.v1.Mode;
import io.hintd.v1.RequestHintsResponse;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.yarn.client.api.AMRMClient;
import org.apache.hadoop.yarn.client.api.AMRMClient.ContainerRequest;
import org.junit.jupiter.api.Test;

class ContainerRequestsTest {
  private static final Attempt ATTEMPT = new Attempt("application_1700000000000_0001", 1);

  @Test
  void everyContainerIsAskedForOnceWithRelaxedLocality() {
    HintRequest request = new HintRequest(ATTEMPT).group(new Group("map", 4, 1024, 1));
    List<ContainerRequest> asked = ContainerRequests.of(request, answer(Mode.MODE_ON, hint("map", 2, true), hint("map", 1, false)));
    assertEquals(4, asked.size());
    assertTrue(asked.stream().allMatch(ContainerRequest::getRelaxLocality));
    assertEquals(Collections.singletonList("h1"), asked.get(0).getNodes(), "leased: no second choice");
    assertEquals(Arrays.asList("h1", "h2"), asked.get(2).getNodes());
    assertEquals(Arrays.asList("/r1", "/r2"), asked.get(2).getRacks());
    assertNull(asked.get(3).getNodes(), "not hinted");
    assertEquals(1, asked.get(0).getPriority().getPriority());
  }

  @Test
  void labelledGroupsAndShadowHintsGetNoLocality() {
    HintRequest labelled = new HintRequest(ATTEMPT).group(new Group("map", 1, 1024, 1).label("gpu"));
    ContainerRequest asked = ContainerRequests.of(labelled, answer(Mode.MODE_ON, hint("map", 1, true))).get(0);
    assertNull(asked.getNodes());
    assertEquals("gpu", asked.getNodeLabelExpression());
    HintRequest plain = new HintRequest(ATTEMPT).group(new Group("map", 1, 1024, 1));
    assertNull(ContainerRequests.of(plain, answer(Mode.MODE_SHADOW, hint("map", 1, true))).get(0).getNodes());
  }

  @Test
  void amrmClientTakesThemAll() {
    HintRequest request =
        new HintRequest(ATTEMPT)
            .group(new Group("map", 3, 1024, 1))
            .group(new Group("gpu", 1, 1024, 1).label("gpu"))
            .group(new Group("late", 1, 1024, 1).priority(7).allocationRequestId(9));
    AMRMClient<ContainerRequest> client = AMRMClient.createAMRMClient();
    client.init(new Configuration());
    for (ContainerRequest asked :
        ContainerRequests.of(request, answer(Mode.MODE_ON, hint("map", 1, true), hint("map", 1, false), hint("late", 1, true)))) {
      client.addContainerRequest(asked); // checks locality and labels within each scheduler key
    }
    client.stop();
  }

  private static Answer answer(Mode mode, io.hintd.v1.Hint... hints) {
    HintSet set = HintSet.newBuilder().setMode(mode).addAllHints(Arrays.asList(hints)).build();
    return Answer.of(RequestHintsResponse.newBuilder().setHints(set).setToken("t").build());
  }

  private static io.hintd.v1.Hint hint(String group, int count, boolean leased) {
    io.hintd.v1.Hint.Builder hint =
        io.hintd.v1.Hint.newBuilder().setGroup(group).setHost("h1").setCount(count).addFallbacks("h2");
    hint.addRacks("/r1").addRacks("/r2");
    for (long i = 0; leased && i < count; i++) {
      hint.addLeaseIds(i + 1);
    }
    return hint.build();
  }
}
