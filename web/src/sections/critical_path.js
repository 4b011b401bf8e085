// The critical path of a recorded step: the longest parts of its critical path.
import { card } from '../dom.js';
import { count, percent, seconds, words } from '../format.js';
import { table } from '../table.js';

export function criticalPath({ critical_path: path }) {
  if (!path) return [];
  const kinds = Object.entries(path.time_by_kind).filter(([, time]) => time > 0.005 * path.time_s);
  const about = `${seconds(path.time_s)} of the recording, each part behind the one before it: ${kinds.map(([kind, time]) => `${words(kind)} ${percent(time / path.time_s)}`).join(', ')}.`;
  const columns = [
    { title: 'part', text: true, class: 'name', value: (p) => p.name },
    { title: 'kind', text: true, value: (p) => p.kind, show: words },
    { title: 'count', value: (p) => p.count, show: count },
    { title: 'total', value: (p) => p.time_s, show: seconds },
    { title: 'share', value: (p) => p.time_s / path.time_s, show: percent },
  ];
  return card('Critical path', about, table(columns, path.parts, { id: 'critical-path', sort: 3, search: (p) => `${p.name} ${p.kind}`, placeholder: 'kernel, call or kind' }));
}
