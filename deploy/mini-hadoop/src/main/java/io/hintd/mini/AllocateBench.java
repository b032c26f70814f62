package io.hintd.mini;

import java.security.PrivilegedExceptionAction;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.security.UserGroupInformation;
import org.apache.hadoop.yarn.api.ApplicationMasterProtocol;
import org.apache.hadoop.yarn.api.protocolrecords.AllocateRequest;
import org.apache.hadoop.yarn.api.protocolrecords.AllocateResponse;
import org.apache.hadoop.yarn.api.protocolrecords.FinishApplicationMasterRequest;
import org.apache.hadoop.yarn.api.protocolrecords.RegisterApplicationMasterRequest;
import org.apache.hadoop.yarn.api.records.ApplicationId;
import org.apache.hadoop.yarn.api.records.ApplicationSubmissionContext;
import org.apache.hadoop.yarn.api.records.Container;
import org.apache.hadoop.yarn.api.records.ContainerId;
import org.apache.hadoop.yarn.api.records.ContainerLaunchContext;
import org.apache.hadoop.yarn.api.records.FinalApplicationStatus;
import org.apache.hadoop.yarn.api.records.Priority;
import org.apache.hadoop.yarn.api.records.Resource;
import org.apache.hadoop.yarn.api.records.ResourceRequest;
import org.apache.hadoop.yarn.api.records.YarnApplicationState;
import org.apache.hadoop.yarn.client.ClientRMProxy;
import org.apache.hadoop.yarn.client.api.YarnClient;
import org.apache.hadoop.yarn.client.api.YarnClientApplication;
import org.apache.hadoop.yarn.conf.YarnConfiguration;
import org.apache.hadoop.yarn.util.Records;

/**
 * Times Allocate as an ApplicationMaster sees it, with an unmanaged one: {@code AllocateBench QUEUE QUIET ASKING}.
 *
 * <p>QUIET allocates that ask for nothing, then ASKING that ask for a container of a new priority (and, in between,
 * take the ask back and give back what came). Prints microseconds.
 */
public final class AllocateBench {
  private ApplicationMasterProtocol scheduler;
  private int responseId;

  public static void main(String[] arguments) throws Exception {
    Configuration conf = new YarnConfiguration();
    YarnClient yarn = YarnClient.createYarnClient();
    yarn.init(conf);
    yarn.start();
    YarnClientApplication created = yarn.createApplication();
    ApplicationSubmissionContext submission = created.getApplicationSubmissionContext();
    submission.setApplicationName("allocate-bench");
    submission.setQueue(arguments[0]);
    submission.setUnmanagedAM(true);
    submission.setAMContainerSpec(Records.newRecord(ContainerLaunchContext.class));
    submission.setResource(Resource.newInstance(256, 1));
    ApplicationId id = yarn.submitApplication(submission);
    while (yarn.getApplicationReport(id).getYarnApplicationState() != YarnApplicationState.ACCEPTED
        || yarn.getAMRMToken(id) == null) {
      Thread.sleep(100);
    }
    UserGroupInformation user = UserGroupInformation.createRemoteUser("bench");
    user.addToken(yarn.getAMRMToken(id));
    user.doAs(
        (PrivilegedExceptionAction<Void>)
            () -> {
              new AllocateBench().run(conf, Integer.parseInt(arguments[1]), Integer.parseInt(arguments[2]));
              return null;
            });
    System.exit(0);
  }

  private void run(Configuration conf, int quiet, int asking) throws Exception {
    scheduler = ClientRMProxy.createRMProxy(conf, ApplicationMasterProtocol.class);
    scheduler.registerApplicationMaster(RegisterApplicationMasterRequest.newInstance("localhost", 0, ""));
    List<Long> times = new ArrayList<>();
    for (int i = 0; i < quiet; i++) {
      long began = System.nanoTime();
      allocate(Collections.<ResourceRequest>emptyList(), Collections.<ContainerId>emptyList());
      if (i >= quiet / 4) { // the first are of code that is not compiled yet
        times.add(System.nanoTime() - began);
      }
    }
    print("quiet", times);
    times.clear();
    for (int i = 0; i < asking; i++) {
      long began = System.nanoTime();
      AllocateResponse response = allocate(ask(100 + i, 1), Collections.<ContainerId>emptyList());
      times.add(System.nanoTime() - began);
      List<ContainerId> came = new ArrayList<>();
      response.getAllocatedContainers().forEach((Container container) -> came.add(container.getId()));
      response = allocate(ask(100 + i, 0), came);
      came.clear();
      response.getAllocatedContainers().forEach((Container container) -> came.add(container.getId()));
      allocate(Collections.<ResourceRequest>emptyList(), came);
    }
    print("asking", times);
    scheduler.finishApplicationMaster(
        FinishApplicationMasterRequest.newInstance(FinalApplicationStatus.SUCCEEDED, "", ""));
  }

  private AllocateResponse allocate(List<ResourceRequest> asks, List<ContainerId> released) throws Exception {
    AllocateRequest request = Records.newRecord(AllocateRequest.class);
    request.setResponseId(responseId);
    request.setAskList(asks);
    request.setReleaseList(released);
    AllocateResponse response = scheduler.allocate(request);
    responseId = response.getResponseId();
    return response;
  }

  private static List<ResourceRequest> ask(int priority, int count) {
    return Arrays.asList(
        ResourceRequest.newInstance(Priority.newInstance(priority), "*", Resource.newInstance(256, 1), count, true));
  }

  private static void print(String what, List<Long> nanos) {
    if (nanos.isEmpty()) {
      return;
    }
    Collections.sort(nanos);
    System.out.printf(
        "%s n=%d p50=%d p99=%d max=%d%n", what, nanos.size(), at(nanos, 0.5), at(nanos, 0.99), at(nanos, 1));
  }

  private static long at(List<Long> sorted, double share) {
    int rank = (int) Math.ceil(sorted.size() * share) - 1;
    return TimeUnit.NANOSECONDS.toMicros(sorted.get(Math.max(rank, 0)));
  }
}
