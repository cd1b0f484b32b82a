export interface Bar {
  readonly label: string;
  readonly value: number;
  /** Bars of one group have one colour. */
  readonly group: string;
}

export interface BarChart {
  readonly title: string;
  readonly unit: string;
  readonly bars: readonly Bar[];
}

const layout = { width: 720, labelWidth: 210, valueWidth: 110, rowHeight: 22, top: 40, bottom: 12 } as const;
const colours = ["#2563a8", "#c2702a", "#4d8b4a", "#8a5a9e", "#888888"] as const;

/** Horizontal bars from zero, as an SVG that reads on light and dark pages. */
export function barChart({ title, unit, bars }: BarChart): string {
  const longest = Math.max(...bars.map((bar) => bar.value), Number.MIN_VALUE);
  const room = layout.width - layout.labelWidth - layout.valueWidth;
  const groups = [...new Set(bars.map((bar) => bar.group))];
  const height = layout.top + bars.length * layout.rowHeight + layout.bottom;
  const rows = bars.map((bar, index) => {
    const y = layout.top + index * layout.rowHeight;
    const length = Math.max(1, (bar.value / longest) * room);
    const colour = colours[groups.indexOf(bar.group) % colours.length];
    return [
      `<text x="${layout.labelWidth - 8}" y="${y + 14}" text-anchor="end">${escapeText(bar.label)}</text>`,
      `<rect x="${layout.labelWidth}" y="${y + 3}" width="${length.toFixed(1)}" height="15" fill="${colour}"/>`,
      `<text x="${(layout.labelWidth + length + 6).toFixed(1)}" y="${y + 14}">${formatNumber(bar.value)} ${escapeText(unit)}</text>`,
    ].join("\n  ");
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${layout.width}" height="${height}" viewBox="0 0 ${layout.width} ${height}" font-family="sans-serif" font-size="12" fill="#222222">
  <rect width="${layout.width}" height="${height}" fill="#ffffff"/>
  <text x="12" y="22" font-size="14" font-weight="bold">${escapeText(title)}</text>
  ${rows.join("\n  ")}
</svg>
`;
}

/** Three significant digits, without exponents: 0.123, 1.23, 12.3, 123, 1,230. */
export function formatNumber(value: number): string {
  const digits = Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : Math.abs(value) >= 1 ? 2 : 3;
  return value.toLocaleString("en-US", { minimumFractionDigits: 0, maximumFractionDigits: digits });
}

function escapeText(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
