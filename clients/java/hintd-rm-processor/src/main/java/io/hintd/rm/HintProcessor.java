package io.hintd.rm;

import io.hintd.client.Attempt;
import io.hintd.plugin.SettingsFile;
import java.io.File;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.yarn.ams.ApplicationMasterServiceContext;
import org.apache.hadoop.yarn.ams.ApplicationMasterServiceProcessor;
import org.apache.hadoop.yarn.api.protocolrecords.AllocateRequest;
import org.apache.hadoop.yarn.api.protocolrecords.AllocateResponse;
import org.apache.hadoop.yarn.api.protocolrecords.FinishApplicationMasterRequest;
import org.apache.hadoop.yarn.api.protocolrecords.FinishApplicationMasterResponse;
import org.apache.hadoop.yarn.api.protocolrecords.RegisterApplicationMasterRequest;
import org.apache.hadoop.yarn.api.protocolrecords.RegisterApplicationMasterResponse;
import org.apache.hadoop.yarn.api.records.ApplicationAttemptId;
import org.apache.hadoop.yarn.api.records.FinalApplicationStatus;
import org.apache.hadoop.yarn.api.records.ResourceRequest;
import org.apache.hadoop.yarn.exceptions.InvalidResourceRequestException;
import org.apache.hadoop.yarn.exceptions.YarnException;
import org.apache.hadoop.yarn.server.resourcemanager.RMContext;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Gives requests hints on their way to the scheduler: {@code yarn.resourcemanager.application-master-service.processors}.
 *
 * <p>hintd's address, modes and times stand in the file that {@value #FILE} names. Whatever goes wrong here or at
 * hintd, YARN gets the request as the application sent it.
 */
public class HintProcessor implements ApplicationMasterServiceProcessor {
  /** Names the file of settings; without it all is as by default, in shadow. */
  public static final String FILE = "hintd.rm-processor.file";

  private static final Logger LOG = LoggerFactory.getLogger(HintProcessor.class);

  private final Counters counters = new Counters();
  private final Recurring recurring = new Recurring();
  private final Map<ApplicationAttemptId, Hinted> attempts = new ConcurrentHashMap<>();
  private ApplicationMasterServiceProcessor next;
  private volatile Cluster cluster;
  private SettingsFile<Settings> settings;
  private Daemon daemon;
  private Semaphore waiting;
  private ScheduledExecutorService upkeep;

  @Override
  public void init(ApplicationMasterServiceContext context, ApplicationMasterServiceProcessor nextProcessor) {
    next = nextProcessor;
    try {
      RMContext rm = (RMContext) context;
      Configuration conf = rm.getYarnConfiguration();
      RmCluster nodes = new RmCluster(rm, conf);
      String file = conf.get(FILE, "");
      counters.delays(nodes::delays);
      start(nodes, file.isEmpty() ? null : new File(file));
      upkeep.scheduleWithFixedDelay(guarded(nodes::refresh), 0, 1, TimeUnit.SECONDS);
      LOG.info("hintd: requests pass through {}, settings in {}", getClass().getName(), file);
    } catch (Throwable wrong) {
      cluster = null; // and everything passes
      LOG.error("hintd: can't start, requests pass as they are", wrong);
    }
  }

  /** As {@link #init}, for a cluster that is told of. */
  void start(Cluster nodes, File file) {
    settings = new SettingsFile<>(file, Settings::of, counters.reloads, counters.reloadsRefused);
    daemon = new Daemon(counters);
    waiting = new Semaphore(Math.max(settings.now().waiting, 0));
    counters.gauge("attempts", attempts::size);
    counters.modes(() -> settings.now().modes());
    counters.register();
    upkeep =
        Executors.newSingleThreadScheduledExecutor(
            work -> {
              Thread thread = new Thread(work, "hintd-upkeep");
              thread.setDaemon(true);
              return thread;
            });
    Runnable look =
        () -> {
          if (nodes.over()) {
            LOG.info("hintd: this ResourceManager is no longer active, the processor of its services ends");
            stop(); // nobody else does: YARN has made another, with other services
            return;
          }
          settings.look();
          daemon.use(settings.now());
        };
    upkeep.scheduleWithFixedDelay(guarded(look), 0, 1, TimeUnit.SECONDS);
    upkeep.scheduleWithFixedDelay(guarded(this::sweep), 30, 30, TimeUnit.SECONDS);
    cluster = nodes;
  }

  void next(ApplicationMasterServiceProcessor processor) {
    next = processor;
  }

  Counters counters() {
    return counters;
  }

  void stop() {
    cluster = null; // whoever comes yet passes
    upkeep.shutdown();
    daemon.close();
    attempts.clear();
  }

  @Override
  public void registerApplicationMaster(
      ApplicationAttemptId id, RegisterApplicationMasterRequest request, RegisterApplicationMasterResponse response)
      throws IOException, YarnException {
    next.registerApplicationMaster(id, request, response);
    try {
      Cluster of = cluster;
      Cluster.App app = of == null ? null : of.app(id);
      if (app != null) {
        Attempt attempt = new Attempt(id.getApplicationId().toString(), id.getAttemptId());
        Hinted hinted = new Hinted(attempt, app, of, daemon, counters, recurring, waiting, settings.now());
        attempts.put(id, hinted);
        synchronized (hinted) {
          hinted.registered();
        }
      }
    } catch (Throwable wrong) {
      attempts.remove(id);
      failed("registration", id, wrong);
    }
  }

  @Override
  public void allocate(ApplicationAttemptId id, AllocateRequest request, AllocateResponse response)
      throws YarnException {
    Hinted hinted = attempts.get(id);
    if (hinted == null || hinted.givenUp()) {
      if (hinted == null || !passOwed(id, request, response, hinted)) {
        next.allocate(id, request, response);
      }
      return;
    }
    long began = System.nanoTime();
    // The request empties its own list when it is given another.
    List<ResourceRequest> came = new ArrayList<>(request.getAskList());
    long[] waited = new long[1];
    boolean rewritten = false;
    boolean quiet = false;
    synchronized (hinted) {
      try {
        quiet = hinted.quiet(came);
        List<ResourceRequest> rows = hinted.before(request, came, settings.now(), waited);
        if (rows != came) {
          rewritten = true;
          request.setAskList(rows);
        }
      } catch (Throwable wrong) {
        hinted.giveUp();
        failed("allocate", id, wrong);
      }
      long before = System.nanoTime();
      pass(id, request, response, hinted, came, rewritten);
      long after = System.nanoTime();
      try {
        if (!hinted.givenUp()) {
          hinted.after(request, response);
        }
        count(quiet, System.nanoTime() - began - (after - before), waited[0], after - before);
      } catch (Throwable wrong) {
        hinted.giveUp();
        failed("allocate", id, wrong);
      }
    }
  }

  /** Passes what came with what YARN is owed; false: it is owed nothing. */
  private boolean passOwed(
      ApplicationAttemptId id, AllocateRequest request, AllocateResponse response, Hinted hinted) throws YarnException {
    synchronized (hinted) {
      if (!hinted.owes()) {
        return false;
      }
      passPlain(id, request, response, hinted, new ArrayList<>(request.getAskList()));
      return true;
    }
  }

  /** {@code came}: what the application asked for; {@code rewritten}: that is not what the request has. */
  private void pass(
      ApplicationAttemptId id, AllocateRequest request, AllocateResponse response, Hinted hinted,
      List<ResourceRequest> came, boolean rewritten)
      throws YarnException {
    if (hinted.givenUp()) {
      passPlain(id, request, response, hinted, came);
      return;
    }
    try {
      next.allocate(id, request, response);
    } catch (Throwable refused) {
      // A bad release list is enough to have YARN take no asks either; the application repeats its own alone.
      hinted.giveUp();
      if (!rewritten || !(refused instanceof InvalidResourceRequestException)) {
        LOG.warn("hintd: YARN refuses an allocate of {}, whose requests pass as they are: {}", id, refused.toString());
        throw refused;
      }
      // YARN checks all asks before it takes any. If the rows of ours were what it minds, it shall have none of them.
      counters.resentPlain.increment();
      LOG.warn("hintd: YARN refuses asks of {}, sent again as they came: {}", id, refused.getMessage());
      passPlain(id, request, response, hinted, came);
    }
  }

  /** Passes what came with what was held. If YARN minds the latter, what came alone; it is owed until YARN took it. */
  private void passPlain(
      ApplicationAttemptId id, AllocateRequest request, AllocateResponse response, Hinted hinted,
      List<ResourceRequest> came)
      throws YarnException {
    List<ResourceRequest> rows;
    try {
      rows = hinted.plain(came);
    } catch (Throwable wrong) {
      failed("allocate", id, wrong);
      rows = null;
    }
    if (rows != null) {
      request.setAskList(rows);
      try {
        next.allocate(id, request, response);
        hinted.settled();
        return;
      } catch (InvalidResourceRequestException refused) {
        if (rows.size() == came.size()) {
          throw refused;
        }
        LOG.warn("hintd: YARN refuses what was held of {}, which is sent again later: {}", id, refused.getMessage());
      }
    }
    request.setAskList(came);
    next.allocate(id, request, response);
    try {
      hinted.delivered(response);
    } catch (Throwable wrong) {
      failed("allocate", id, wrong);
    }
  }

  private void count(boolean quiet, long own, long waited, long yarn) {
    counters.allocates.increment();
    (quiet ? counters.quiet : counters.asking).add(own);
    counters.yarn.add(yarn);
    if (waited > 0) {
      counters.waited.add(waited);
    }
  }

  @Override
  public void finishApplicationMaster(
      ApplicationAttemptId id, FinishApplicationMasterRequest request, FinishApplicationMasterResponse response) {
    next.finishApplicationMaster(id, request, response);
    Hinted hinted = attempts.remove(id);
    try {
      if (hinted != null) {
        synchronized (hinted) {
          hinted.done(request.getFinalApplicationStatus() != FinalApplicationStatus.SUCCEEDED);
        }
      }
    } catch (Throwable wrong) {
      failed("the end", id, wrong);
    }
  }

  /** Attempts that ended without a word. */
  private void sweep() {
    attempts.forEach(
        (id, hinted) -> {
          if (!cluster.alive(id)) {
            attempts.remove(id);
            synchronized (hinted) {
              hinted.done(true);
            }
          }
        });
  }

  private void failed(String what, ApplicationAttemptId id, Throwable wrong) {
    counters.errors.increment();
    LOG.error("hintd: at {} of {}, whose requests pass as they are", what, id, wrong);
  }

  private Runnable guarded(Runnable work) {
    return () -> {
      try {
        work.run();
      } catch (Throwable wrong) {
        counters.errors.increment();
        LOG.error("hintd: upkeep", wrong);
      }
    };
  }
}
