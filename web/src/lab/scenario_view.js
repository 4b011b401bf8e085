// The scenario as YAML, both ways, and the command that asks the same.
import { card, h } from '../dom.js';
import { predict } from './ask.js';
import { yamlEditor } from './editor.js';
import { changes, command, current, redo, undo, update, yaml } from './state.js';

export function scenarioView() {
  const place = h('div', { class: 'editor' });
  const told = h('p', { id: 'yaml-told', role: 'status' });
  const line = h('pre', { id: 'command', tabindex: '0', 'aria-label': 'Command' });
  const copy = h('button', { type: 'button', onclick: () => navigator.clipboard?.writeText(line.textContent) }, 'Copy');
  const terminal = h('details', { class: 'behind', id: 'terminal', ontoggle: () => { if (terminal.open) line.textContent = command(current()); } }, h('summary', {}, 'The same question for a terminal'), line, copy);
  const changed = h('p', { id: 'changed' });
  let editor; // made when it is first looked at
  let shown = ''; // the text of the question; what the editor has beyond it is a draft
  const tell = (said, kind, at = null) => {
    told.textContent = said;
    told.className = kind;
    editor.mark(at);
  };
  async function apply() {
    const text = editor.text();
    if (text === shown) return tell('', '');
    try {
      const answer = await predict({ ...current(), text }, {});
      const scenario = answer.question.scenario ?? {};
      tell('Applied.', 'good');
      if (editor.text() === text) shown = text;
      update((s) => { s.scenario = scenario; });
    } catch (error) {
      const { file, line: number, column } = error.where ?? {};
      tell(error.message, 'bad', file === 'scenario' && number && editor.text() === text ? { line: number, column } : null);
    }
  }
  const show = (state) => {
    editor ??= yamlEditor(place, { id: 'yaml', 'aria-label': 'Scenario in YAML', 'aria-describedby': 'yaml-told' }, { apply, undo, redo });
    const text = yaml(state.scenario);
    if (text !== shown) {
      const draft = editor.text() !== shown;
      shown = text;
      if (!draft || !editor.focused()) editor.replace(text, draft);
    }
    if (terminal.open) line.textContent = command(state);
    const all = changes(state);
    changed.textContent = all.length ? `Changed besides: ${all.join(', ')}` : 'No number of the GPU is changed.';
  };
  const elements = [
    card('Scenario', 'The scenario as a YAML file. Edit the text, then apply it (Ctrl+Enter); the controls follow. Tab leaves the text.', place, h('div', { class: 'buttons' }, h('button', { type: 'button', class: 'primary', id: 'apply', onclick: apply }, 'Apply')), told, changed, terminal),
  ];
  return { elements, show };
}
