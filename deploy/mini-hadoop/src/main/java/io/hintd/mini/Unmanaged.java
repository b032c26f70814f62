package io.hintd.mini;

import java.security.PrivilegedExceptionAction;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.security.UserGroupInformation;
import org.apache.hadoop.yarn.api.ApplicationMasterProtocol;
import org.apache.hadoop.yarn.api.protocolrecords.AllocateRequest;
import org.apache.hadoop.yarn.api.protocolrecords.AllocateResponse;
import org.apache.hadoop.yarn.api.protocolrecords.FinishApplicationMasterRequest;
import org.apache.hadoop.yarn.api.protocolrecords.RegisterApplicationMasterRequest;
import org.apache.hadoop.yarn.api.records.ApplicationId;
import org.apache.hadoop.yarn.api.records.ApplicationSubmissionContext;
import org.apache.hadoop.yarn.api.records.ContainerId;
import org.apache.hadoop.yarn.api.records.ContainerLaunchContext;
import org.apache.hadoop.yarn.api.records.FinalApplicationStatus;
import org.apache.hadoop.yarn.api.records.Resource;
import org.apache.hadoop.yarn.api.records.ResourceRequest;
import org.apache.hadoop.yarn.api.records.YarnApplicationState;
import org.apache.hadoop.yarn.client.ClientRMProxy;
import org.apache.hadoop.yarn.client.api.YarnClient;
import org.apache.hadoop.yarn.util.Records;

/** An ApplicationMaster in this process. Containers that it is given are never launched. */
final class Unmanaged {
  private final ApplicationMasterProtocol scheduler;
  private int responseId;

  private Unmanaged(ApplicationMasterProtocol scheduler) {
    this.scheduler = scheduler;
  }

  /** Submitted and registered. */
  static Unmanaged start(Configuration conf, String name, String queue) throws Exception {
    YarnClient yarn = YarnClient.createYarnClient();
    yarn.init(conf);
    yarn.start();
    ApplicationSubmissionContext submission = yarn.createApplication().getApplicationSubmissionContext();
    submission.setApplicationName(name);
    submission.setQueue(queue);
    submission.setUnmanagedAM(true);
    submission.setAMContainerSpec(Records.newRecord(ContainerLaunchContext.class));
    submission.setResource(Resource.newInstance(256, 1));
    ApplicationId id = yarn.submitApplication(submission);
    while (yarn.getApplicationReport(id).getYarnApplicationState() != YarnApplicationState.ACCEPTED
        || yarn.getAMRMToken(id) == null) {
      Thread.sleep(100);
    }
    UserGroupInformation user = UserGroupInformation.createRemoteUser(name);
    user.addToken(yarn.getAMRMToken(id));
    return user.doAs(
        (PrivilegedExceptionAction<Unmanaged>)
            () -> {
              Unmanaged made = new Unmanaged(ClientRMProxy.createRMProxy(conf, ApplicationMasterProtocol.class));
              made.scheduler.registerApplicationMaster(RegisterApplicationMasterRequest.newInstance("localhost", 0, ""));
              return made;
            });
  }

  AllocateResponse allocate(List<ResourceRequest> asks, List<ContainerId> released) throws Exception {
    AllocateRequest request = Records.newRecord(AllocateRequest.class);
    request.setResponseId(responseId);
    request.setAskList(asks);
    request.setReleaseList(released);
    AllocateResponse response = scheduler.allocate(request);
    responseId = response.getResponseId();
    return response;
  }

  void finish() throws Exception {
    scheduler.finishApplicationMaster(
        FinishApplicationMasterRequest.newInstance(FinalApplicationStatus.SUCCEEDED, "", ""));
  }
}
