package io.hintd.client;

import io.hintd.v1.TaskGroup;
import io.hintd.yarn.ResourceInformationProto;
import io.hintd.yarn.ResourceProto;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/** Containers alike. Groups of one scheduler key (priority, allocation request) must have one size and label. */
public final class Group {
  private final String name;
  private final int count;
  private final long memoryMb;
  private final int vcores;
  private int whole;
  private String role = "";
  private Integer priority;
  private long allocationRequestId = -1;
  private String label = "";
  private List<String> inputPaths = Collections.emptyList();
  private final Map<String, Long> resources = new TreeMap<>();

  /** {@code count} containers of this size; a group without a priority gets its position in the request, from 1. */
  public Group(String name, int count, long memoryMb, int vcores) {
    this.name = name;
    this.count = count;
    this.memoryMb = memoryMb;
    this.vcores = vcores;
  }

  /**
   * Containers of the group in all, where it is asked for in parts: these, those asked for before, and those that will be
   * asked for later. hintd places all as one. 0: not said.
   */
  public Group whole(int value) {
    whole = value;
    return this;
  }

  /** map, reduce, worker, ... */
  public Group role(String value) {
    role = value;
    return this;
  }

  /** YARN's: the lower number goes first; 0 is one of them. */
  public Group priority(int value) {
    priority = value;
    return this;
  }

  /** YARN's; -1 where there is none. */
  public Group allocationRequestId(long value) {
    allocationRequestId = value;
    return this;
  }

  /** Node label expression; empty: nodes without labels. */
  public Group label(String value) {
    label = value;
    return this;
  }

  /** What its containers read, together. */
  public Group inputPaths(List<String> value) {
    inputPaths = new ArrayList<>(value);
    return this;
  }

  /** A kind beside memory and vcores, by YARN's name. */
  public Group resource(String kind, long value) {
    resources.put(kind, value);
    return this;
  }

  public String name() {
    return name;
  }

  public int count() {
    return count;
  }

  public long memoryMb() {
    return memoryMb;
  }

  public int vcores() {
    return vcores;
  }

  public String label() {
    return label;
  }

  public long allocationRequestId() {
    return allocationRequestId;
  }

  /** The priority it is asked with, at this position of a request. */
  int priorityAt(int position) {
    return priority == null ? position : priority;
  }

  Map<String, Long> resources() {
    return resources;
  }

  TaskGroup toWire(int position) {
    ResourceProto.Builder size = ResourceProto.newBuilder().setMemory(memoryMb).setVirtualCores(vcores);
    resources.forEach(
        (kind, value) ->
            size.addResourceValueMap(ResourceInformationProto.newBuilder().setKey(kind).setValue(value)));
    TaskGroup.Builder wire =
        TaskGroup.newBuilder()
            .setName(name)
            .setRole(role)
            .setCount(count)
            .setWhole(whole)
            .setResource(size)
            .setPriority(priorityAt(position))
            .setNodeLabelExpression(label)
            .addAllInputPaths(inputPaths);
    if (allocationRequestId != -1) {
      wire.setAllocationRequestId(allocationRequestId);
    }
    return wire.build();
  }
}
