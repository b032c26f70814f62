package io.hintd.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.protobuf.ByteString;
import com.google.protobuf.Descriptors;
import com.google.protobuf.Descriptors.FieldDescriptor;
import com.google.protobuf.DynamicMessage;
import com.google.protobuf.Message;
import io.hintd.yarn.ResourceRequestProto;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.stream.Collectors;
import org.apache.hadoop.yarn.api.records.ExecutionType;
import org.apache.hadoop.yarn.api.records.ExecutionTypeRequest;
import org.apache.hadoop.yarn.api.records.Priority;
import org.apache.hadoop.yarn.api.records.Resource;
import org.apache.hadoop.yarn.api.records.ResourceRequest;
import org.apache.hadoop.yarn.api.records.impl.pb.ResourceRequestPBImpl;
import org.apache.hadoop.yarn.proto.YarnProtos;
import org.junit.jupiter.api.Test;

/** The subset of YARN's messages in proto/ beside Hadoop's own generated classes. */
class WireTest {
  private static final Descriptors.FileDescriptor OURS = io.hintd.yarn.YarnProtos.getDescriptor();

  @Test
  void everyFieldHasHadoopsNumberNameTypeLabelAndDefault() {
    int fields = 0;
    for (Descriptors.Descriptor ours : OURS.getMessageTypes()) {
      org.apache.hadoop.thirdparty.protobuf.Descriptors.Descriptor theirs =
          YarnProtos.getDescriptor().findMessageTypeByName(ours.getName());
      assertEquals(theirs.getFullName(), ours.getFullName());
      for (FieldDescriptor field : ours.getFields()) {
        org.apache.hadoop.thirdparty.protobuf.Descriptors.FieldDescriptor his =
            theirs.findFieldByNumber(field.getNumber());
        String where = ours.getName() + "." + field.getName();
        assertEquals(his.getName(), field.getName(), where);
        assertEquals(his.getType().name(), field.getType().name(), where);
        assertEquals(
            his.isRepeated() + " " + his.isRequired() + " " + his.isPacked(),
            field.isRepeated() + " " + field.isRequired() + " " + field.isPacked(), where);
        if (field.getJavaType() == FieldDescriptor.JavaType.MESSAGE) {
          assertEquals(his.getMessageType().getFullName(), field.getMessageType().getFullName(), where);
        } else if (!field.isRepeated()) {
          assertEquals(his.getDefaultValue().toString(), field.getDefaultValue().toString(), where);
        }
        fields++;
      }
    }
    for (Descriptors.EnumDescriptor ours : OURS.getEnumTypes()) {
      org.apache.hadoop.thirdparty.protobuf.Descriptors.EnumDescriptor theirs =
          YarnProtos.getDescriptor().findEnumTypeByName(ours.getName());
      for (Descriptors.EnumValueDescriptor value : ours.getValues()) {
        assertEquals(theirs.findValueByName(value.getName()).getNumber(), value.getNumber(), value.getFullName());
      }
    }
    assertTrue(fields >= 20 && OURS.getEnumTypes().size() >= 4, "the test sees the messages: " + fields);
  }

  @Test
  void whatWeWriteHadoopReadsAndWritesTheSame() throws Exception {
    Random random = new Random(8);
    for (Descriptors.Descriptor type : OURS.getMessageTypes()) {
      for (int i = 0; i < 200; i++) {
        Message ours = random(type, random);
        org.apache.hadoop.thirdparty.protobuf.Message theirs = hadoops(type.getName()).getParserForType().parseFrom(ours.toByteArray());
        assertEquals(ours.toString(), theirs.toString(), type.getName());
        assertTrue(theirs.getUnknownFields().asMap().isEmpty(), "Hadoop knows all of it");
        assertEquals(ours, DynamicMessage.parseFrom(type, theirs.toByteArray()));
      }
    }
  }

  @Test
  void whatHadoopWritesWeReadAndWhatWeDoNotKnowIsKept() throws Exception {
    Random random = new Random(9);
    for (Descriptors.Descriptor type : OURS.getMessageTypes()) {
      for (int i = 0; i < 200; i++) {
        org.apache.hadoop.thirdparty.protobuf.Message theirs = random(hadoops(type.getName()).getDescriptorForType(), random);
        Message ours = DynamicMessage.parseFrom(type, theirs.toByteArray());
        org.apache.hadoop.thirdparty.protobuf.Message back =
            hadoops(type.getName()).getParserForType().parseFrom(ours.toByteArray());
        // Hadoop's object is of a dynamic class on one side: bytes decide.
        assertEquals(theirs.toByteString(), back.toByteString(), type.getName());
      }
    }
  }

  @Test
  void theDaemonTakesHadoopsAsksAndHadoopTakesTheDaemons() throws Exception {
    try (TestDaemon daemon = new TestDaemon("on").start(); HintdClient client = HintdClient.to(daemon.address());
        TestDaemon.Nodes nodes = daemon.nodes(client, 4)) {
      List<ResourceRequest> asked = new ArrayList<>();
      asked.add(ResourceRequest.newInstance(Priority.newInstance(0), "*", Resource.newInstance(1024, 1), 2));
      asked.add(ResourceRequest.newInstance(Priority.newInstance(7), "node-1", Resource.newInstance(1024, 1), 1, false));
      asked.add(ResourceRequest.newInstance(Priority.newInstance(7), "/rack0", Resource.newInstance(1024, 1), 1, false));
      asked.add(ResourceRequest.newInstance(Priority.newInstance(7), "*", Resource.newInstance(1024, 1), 1, false));
      asked.get(0).setAllocationRequestId(5);
      asked.get(0).setExecutionTypeRequest(ExecutionTypeRequest.newInstance(ExecutionType.GUARANTEED, false));
      List<ResourceRequestProto> wire = new ArrayList<>();
      for (ResourceRequest ask : asked) {
        wire.add(ResourceRequestProto.parseFrom(((ResourceRequestPBImpl) ask).getProto().toByteArray()));
      }
      HintRequest request = new HintRequest(new Attempt("application_1700000000000_0001", 1)).asks(wire);
      Answer answer = client.requestHints(request, Duration.ofSeconds(10));
      assertFalse(answer.hints().isEmpty());
      List<ResourceRequest> came = new ArrayList<>();
      for (ResourceRequestProto ask : answer.wire().getAsksList()) {
        came.add(new ResourceRequestPBImpl(YarnProtos.ResourceRequestProto.parseFrom(ask.toByteArray())));
      }
      List<ResourceRequest> strict = came.stream().filter(ask -> ask.getPriority().getPriority() == 7).collect(Collectors.toList());
      assertEquals(
          asked.subList(1, 4).stream().map(WireTest::told).sorted().collect(Collectors.toList()),
          strict.stream().map(WireTest::told).sorted().collect(Collectors.toList()), "strict asks come back as they came");
      List<ResourceRequest> hinted = came.stream().filter(ask -> ask.getAllocationRequestId() == 5).collect(Collectors.toList());
      assertTrue(hinted.stream().allMatch(ResourceRequest::getRelaxLocality));
      assertTrue(hinted.stream().anyMatch(ask -> ask.getResourceName().startsWith("node-")), hinted::toString);
      assertTrue(hinted.stream().anyMatch(ask -> ask.getResourceName().equals("*") && ask.getNumContainers() == 2));
    }
  }

  private static String told(ResourceRequest ask) {
    return Arrays.asList(
            ask.getPriority().getPriority(), ask.getAllocationRequestId(), ask.getResourceName(), ask.getNumContainers(),
            ask.getCapability().getMemorySize(), ask.getCapability().getVirtualCores(), ask.getRelaxLocality())
        .toString();
  }

  private static org.apache.hadoop.thirdparty.protobuf.Message hadoops(String name) throws ReflectiveOperationException {
    Class<?> type = Class.forName(YarnProtos.class.getName() + "$" + name);
    return (org.apache.hadoop.thirdparty.protobuf.Message) type.getMethod("getDefaultInstance").invoke(null);
  }

  private static Message random(Descriptors.Descriptor type, Random random) {
    DynamicMessage.Builder message = DynamicMessage.newBuilder(type);
    for (FieldDescriptor field : type.getFields()) {
      int times = field.isRepeated() ? random.nextInt(3) : field.isRequired() || random.nextBoolean() ? 1 : 0;
      for (int i = 0; i < times; i++) {
        Object value =
            field.getJavaType() == FieldDescriptor.JavaType.MESSAGE ? random(field.getMessageType(), random)
            : field.getJavaType() == FieldDescriptor.JavaType.ENUM ? field.getEnumType().getValues().get(random.nextInt(field.getEnumType().getValues().size()))
            : scalar(field.getJavaType().name(), random);
        if (field.isRepeated()) {
          message.addRepeatedField(field, value);
        } else {
          message.setField(field, value);
        }
      }
    }
    return message.build();
  }

  private static org.apache.hadoop.thirdparty.protobuf.Message random(
      org.apache.hadoop.thirdparty.protobuf.Descriptors.Descriptor type, Random random) {
    org.apache.hadoop.thirdparty.protobuf.DynamicMessage.Builder message =
        org.apache.hadoop.thirdparty.protobuf.DynamicMessage.newBuilder(type);
    for (org.apache.hadoop.thirdparty.protobuf.Descriptors.FieldDescriptor field : type.getFields()) {
      int times = field.isRepeated() ? random.nextInt(3) : field.isRequired() || random.nextBoolean() ? 1 : 0;
      for (int i = 0; i < times; i++) {
        Object value;
        switch (field.getJavaType()) {
          case MESSAGE:
            value = random(field.getMessageType(), random);
            break;
          case ENUM:
            value = field.getEnumType().getValues().get(random.nextInt(field.getEnumType().getValues().size()));
            break;
          default:
            value = scalar(field.getJavaType().name(), random);
        }
        if (field.isRepeated()) {
          message.addRepeatedField(field, value);
        } else {
          message.setField(field, value);
        }
      }
    }
    return message.build();
  }

  private static Object scalar(String kind, Random random) {
    switch (kind) {
      case "INT":
        return random.nextInt();
      case "LONG":
        return random.nextLong();
      case "BOOLEAN":
        return random.nextBoolean();
      case "STRING":
        return "text-ü-" + random.nextInt(1000);
      case "FLOAT":
        return random.nextFloat();
      case "DOUBLE":
        return random.nextDouble();
      default:
        return ByteString.copyFromUtf8("bytes");
    }
  }
}
