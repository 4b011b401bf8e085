// ECharts with just the parts the page uses, and charts that follow the size of their place and the theme.
import { BarChart, CustomChart, HeatmapChart, LineChart, ParallelChart, ScatterChart } from 'echarts/charts';
import { DataZoomComponent, GridComponent, LegendComponent, MarkLineComponent, MarkPointComponent, ParallelComponent, TooltipComponent, VisualMapContinuousComponent } from 'echarts/components';
import { init, use } from 'echarts/core';
import { CanvasRenderer } from 'echarts/renderers';
import { h } from './dom.js';
import { bytes } from './format.js';
import { css } from './palette.js';

use([BarChart, CustomChart, HeatmapChart, LineChart, ParallelChart, ScatterChart, DataZoomComponent, GridComponent, LegendComponent, MarkLineComponent, MarkPointComponent, ParallelComponent, TooltipComponent, VisualMapContinuousComponent, CanvasRenderer]);

const kMostTicks = 6;
const kFont = "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif"; // of the page: a canvas inherits none
let live = [];
let reusing = false;

/** From now on a chart whose id is drawn already is drawn over where it stands: chart() then gives a stand-in for it
 *  (settle() puts the chart in its place), and what is out of sight is drawn when it comes into sight. */
export const reuseCharts = () => { reusing = true; };

export function axis(more = {}) {
  const label = { color: css('--soft'), fontSize: 12, ...more.axisLabel };
  return {
    axisLine: { lineStyle: { color: css('--line') } },
    axisTick: { lineStyle: { color: css('--line') } },
    splitLine: { lineStyle: { color: css('--grid') } },
    nameTextStyle: { color: css('--soft') },
    ...more,
    axisLabel: label,
  };
}

/** An axis of bytes from 0 to at least `most`, with ticks at powers of two: 16, 32, 48 GiB. */
export function bytesAxis(most, more = {}) {
  const interval = 2 ** Math.max(0, Math.ceil(Math.log2(Math.max(1, most) / kMostTicks)));
  return axis({ type: 'value', min: 0, max: interval * Math.max(1, Math.ceil(most / interval)), interval, ...more, axisLabel: { formatter: (v) => bytes(v), ...more.axisLabel } });
}

/** An element with a chart whose options come from `make()`, called again when the theme changes; `begun` is called with
 *  the chart when it is first drawn. */
export function chart(id, make, size = '', begun = undefined) {
  const known = reusing && live.find((entry) => entry.place.id === id && entry.size === size && entry.place.isConnected);
  if (known) {
    known.make = make;
    known.begun = begun;
    if (known.chart) begun?.(known.chart);
    return h('div', { id, class: `chart ${size}`, 'data-stand-in': '' });
  }
  const place = h('div', { id, class: `chart ${size}`, role: 'img', 'aria-label': id });
  live.push({ place, make, size, begun });
  return place;
}

export function options(make) {
  const given = make();
  return {
    animation: false,
    textStyle: { fontFamily: kFont, color: css('--ink') },
    ...given,
    legend: given.legend && { type: 'scroll', textStyle: { color: css('--ink') }, pageIconColor: css('--accent'), pageIconInactiveColor: css('--line'), pageTextStyle: { color: css('--soft') }, itemWidth: 12, itemHeight: 12, ...given.legend },
    tooltip: { backgroundColor: css('--card'), borderColor: css('--line'), textStyle: { color: css('--ink'), fontSize: 13 }, confine: true, ...given.tooltip },
  };
}

/** Points of a line as one array of numbers, which a chart takes without a copy of each. */
export function pairs(along, values) {
  const all = new Float64Array(2 * along.length);
  along.forEach((x, i) => { all[2 * i] = x; all[2 * i + 1] = values[i]; });
  return all;
}

/** Other elements with an id that a stand-in may stand for. */
export const kept = new Map();

/** Puts charts into the places that were kept for them below `element`. */
export function settle(element) {
  for (const place of element.querySelectorAll?.('[data-stand-in]') ?? []) place.replaceWith(live.find((entry) => entry.place.id === place.id)?.place ?? kept.get(place.id));
  return element;
}

let inSight;
function watch(place) {
  inSight ??= new IntersectionObserver((seen) => {
    for (const { target, isIntersecting } of seen) {
      const entry = live.find((one) => one.place === target);
      if (!entry) continue;
      entry.hidden = !isIntersecting;
      if (isIntersecting && entry.stale) redraw(entry);
    }
  });
  inSight.observe(place);
}

function redraw(entry) {
  entry.stale = false;
  const made = options(entry.make);
  made.series.forEach((one, i) => { one.id ??= `${i} ${one.type} ${one.name ?? ''}`; }); // the same series is changed, not made anew
  entry.chart.setOption(made, reusing ? { replaceMerge: ['series', 'parallelAxis', 'visualMap'].filter((part) => made[part]) } : true);
}

/** Draws the charts whose places are in the document; forgets those of a view that is gone. */
export function draw() {
  live = live.filter((entry) => {
    if (!entry.place.isConnected) {
      inSight?.unobserve(entry.place);
      entry.sizes?.disconnect();
      entry.chart?.dispose();
      return false;
    }
    if (!entry.chart) {
      entry.chart = init(entry.place);
      entry.begun?.(entry.chart);
      entry.sizes = new ResizeObserver(() => entry.chart.resize());
      entry.sizes.observe(entry.place);
      if (reusing) watch(entry.place);
    }
    if (entry.hidden) entry.stale = true;
    else redraw(entry);
    return true;
  });
}

/** What a chart that stands in the page is drawn from: {place, make}. */
export const charts = () => live.filter((entry) => entry.place.isConnected);

export function chartAt(id) {
  const entry = live.find((one) => one.place.id === id);
  if (entry?.stale) redraw(entry);
  return entry?.chart;
}
