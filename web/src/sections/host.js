// What the host does while the GPU works, and how fast it must be to stay out of the way.
import { card, h, number } from '../dom.js';
import { digits, percent, seconds } from '../format.js';

const times = (x) => `${digits(x, 2)} times`;

/** At which speed of the host the step changes what it is bound by. */
function tipping({ scale, tipping_scale: tip }) {
  if (!(tip > 0)) return ['never', 'the host has nothing to do'];
  if (tip > 1.01 * scale) return [`${times(tip / scale)} slower`, 'from there on the step is bound by the host'];
  if (tip >= 0.99 * scale) return ['at this speed', 'host and GPU need equally long'];
  return [`${times(scale / tip)} faster`, 'from there on the step is bound by the GPU'];
}

export function host({ prediction }) {
  const { host: own, step } = prediction;
  const bound = own.tipping_scale > 0 && own.tipping_scale < own.scale ? 'The step is bound by the host.' : 'The step is bound by the GPU.';
  const known = own.known
    ? ['measured', 'its costs of dispatching are its own']
    : ['not measured', own.scales_seen ? `hosts seen need ${digits(own.scales_seen[0], 2)} to ${times(own.scales_seen[1])} the reference's time: the range of the step` : 'the range of the step is that of the hosts seen'];
  return card('Host', `${bound} Python, PyTorch and the driver issue its kernels from one thread.`,
    h('div', { class: 'numbers', id: 'host' },
      number('Work of a step', seconds(own.time_s), `${percent(own.time_s / step.time_s)} of the step`),
      number('The GPU waits for it', seconds(own.exposed_s), `${percent(own.share)} of the step`),
      number('Tips on a host', ...tipping(own)),
      number(`Host ${own.name}`, `${digits(own.scale, 3)} ×`, 'the time of the reference host'),
      number('Known', ...known),
    ));
}
