/**
 * Asks hintd where the containers of a YARN application should go.
 *
 * <p>{@link io.hintd.client.HintdClient} asks, releases and follows; {@link io.hintd.client.ContainerRequests} turns
 * hints into what {@code AMRMClient} takes; {@link io.hintd.client.FeedStream} tells the daemon what happens.
 */
package io.hintd.client;
