/**
 * hintd in the ResourceManager: hints for applications that know nothing of it.
 *
 * <p>{@link io.hintd.rm.HintProcessor} is what YARN calls. {@link io.hintd.rm.AskTable} rewrites the asks of one
 * application attempt and knows neither YARN's servers nor the network, so that it can be tested against YARN's rules
 * alone; {@link io.hintd.rm.Daemon} is the way to hintd with its breaker. Whatever fails, a request passes as it came.
 */
package io.hintd.rm;
