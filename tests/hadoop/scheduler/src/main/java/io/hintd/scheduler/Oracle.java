package io.hintd.scheduler;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.File;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import org.apache.hadoop.security.SecurityUtil;

/**
 * Reads scenarios, has Hadoop's own CapacityScheduler go through their steps, and writes each beside what was decided
 * at every step. Arguments: scenario files; each is written over with a field {@code decisions}, or, after
 * {@code --compare}, held against the one that it has.
 */
public final class Oracle {
    private static final ObjectMapper JSON = new ObjectMapper();

    private Oracle() {
    }

    public static void main(String[] arguments) {
        int code = 2;
        try {
            code = replay(arguments);
        } catch (Exception failed) {
            failed.printStackTrace();
        } finally {
            // Hadoop's timers would keep the program alive.
            System.exit(code);
        }
    }

    private static int replay(String[] arguments) throws Exception {
        // Else containers' tokens need hosts that can be looked up, and nobody ever hears of a container.
        SecurityUtil.setTokenServiceUseIp(false);
        List<String> files = new ArrayList<>(Arrays.asList(arguments));
        boolean compare = files.remove("--compare");
        int differ = 0;
        for (String name : files) {
            File file = new File(name);
            ObjectNode scenario = (ObjectNode) JSON.readTree(file);
            // As they will be read: numbers of one type.
            JsonNode decisions = JSON.readTree(run(scenario).toString());
            if (!compare) {
                scenario.set("decisions", decisions);
                JSON.writeValue(file, scenario);
            } else if (!decisions.equals(scenario.get("decisions"))) {
                differ++;
                report(name, decisions, scenario.get("decisions"));
            }
        }
        System.out.println(files.size() + " scenarios, " + differ + " differ");
        return differ == 0 ? 0 : 1;
    }

    /** The first step that is decided otherwise than was recorded. */
    private static void report(String name, JsonNode decisions, JsonNode recorded) {
        for (int step = 0; step < decisions.size(); step++) {
            if (!decisions.get(step).equals(recorded.path(step))) {
                System.out.println(name + ": step " + step + ": Hadoop decides " + decisions.get(step)
                    + ", recorded is " + recorded.path(step));
                return;
            }
        }
    }

    private static ArrayNode run(JsonNode scenario) throws Exception {
        ArrayNode decisions = JSON.createArrayNode();
        try (Cluster cluster = new Cluster(scenario)) {
            for (JsonNode node : scenario.get("nodes")) {
                cluster.add(node);
            }
            for (JsonNode step : scenario.get("steps")) {
                cluster.step(step);
                decisions.add(cluster.decided());
            }
            ObjectNode used = JSON.createObjectNode();
            for (JsonNode queue : scenario.get("queues")) {
                String path = queue.get("path").asText();
                used.set(path, cluster.used(path));
            }
            decisions.add(used);
        }
        return decisions;
    }

    static List<String> none() {
        return Collections.emptyList();
    }
}
