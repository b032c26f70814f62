package io.hintd.mini;

import org.apache.hadoop.yarn.ams.ApplicationMasterServiceContext;
import org.apache.hadoop.yarn.ams.ApplicationMasterServiceProcessor;
import org.apache.hadoop.yarn.api.protocolrecords.AllocateRequest;
import org.apache.hadoop.yarn.api.protocolrecords.AllocateResponse;
import org.apache.hadoop.yarn.api.protocolrecords.FinishApplicationMasterRequest;
import org.apache.hadoop.yarn.api.protocolrecords.FinishApplicationMasterResponse;
import org.apache.hadoop.yarn.api.protocolrecords.RegisterApplicationMasterRequest;
import org.apache.hadoop.yarn.api.protocolrecords.RegisterApplicationMasterResponse;
import org.apache.hadoop.yarn.api.records.ApplicationAttemptId;
import org.apache.hadoop.yarn.api.records.Container;
import org.apache.hadoop.yarn.api.records.ResourceRequest;
import org.apache.hadoop.yarn.exceptions.YarnException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.io.IOException;

/**
 * Says in the ResourceManager's log what applications ask for, before anybody changes it, and where their containers came.
 * {@code mini-hadoop start --processor --log-asks} puts it before hintd's processor.
 */
public class AskLog implements ApplicationMasterServiceProcessor {
  private static final Logger LOG = LoggerFactory.getLogger(AskLog.class);

  private ApplicationMasterServiceProcessor next;

  @Override
  public void init(ApplicationMasterServiceContext context, ApplicationMasterServiceProcessor nextProcessor) {
    next = nextProcessor;
  }

  @Override
  public void registerApplicationMaster(
      ApplicationAttemptId attempt, RegisterApplicationMasterRequest request, RegisterApplicationMasterResponse response)
      throws IOException, YarnException {
    next.registerApplicationMaster(attempt, request, response);
  }

  @Override
  public void allocate(ApplicationAttemptId attempt, AllocateRequest request, AllocateResponse response)
      throws YarnException {
    for (ResourceRequest ask : request.getAskList()) {
      LOG.info(
          "asked {} priority={} id={} name={} count={} memory={} vcores={} relax={} label={} type={}",
          attempt.getApplicationId(),
          ask.getPriority().getPriority(),
          ask.getAllocationRequestId(),
          ask.getResourceName(),
          ask.getNumContainers(),
          ask.getCapability().getMemorySize(),
          ask.getCapability().getVirtualCores(),
          ask.getRelaxLocality(),
          ask.getNodeLabelExpression(),
          ask.getExecutionTypeRequest().getExecutionType());
    }
    int scheduling = request.getSchedulingRequests() == null ? 0 : request.getSchedulingRequests().size();
    int released = request.getReleaseList().size();
    if (scheduling > 0 || released > 0) {
      LOG.info("asked {} scheduling={} released={}", attempt.getApplicationId(), scheduling, released);
    }
    next.allocate(attempt, request, response);
    for (Container container : response.getAllocatedContainers()) {
      LOG.info(
          "given {} priority={} host={}",
          attempt.getApplicationId(),
          container.getPriority().getPriority(),
          container.getNodeId().getHost());
    }
  }

  @Override
  public void finishApplicationMaster(
      ApplicationAttemptId attempt, FinishApplicationMasterRequest request, FinishApplicationMasterResponse response) {
    next.finishApplicationMaster(attempt, request, response);
  }
}
