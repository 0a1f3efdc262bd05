// The style sheet of `sluice report`'s pages: light and dark, from phones to wide screens.
#pragma once

namespace sluice::cli {

inline constexpr const char* kReportStyle = R"CSS(
:root{color-scheme:light dark;--page:#f4f6f8;--card:#fff;--edge:#dfe4ea;--grid:#e6eaef;--text:#17202b;
--soft:#566273;--blue:#1f63d6;--teal:#0b8f7f;--amber:#c77700;--red:#c8372d;--violet:#7446c9;
--gray:#98a2ae;--good:#0a7568;--bad:#b32920}
@media (prefers-color-scheme:dark){:root{--page:#0f1319;--card:#181d25;--edge:#2a323d;--grid:#27303a;
--text:#e7ecf2;--soft:#9ba8b7;--blue:#6ea8ff;--teal:#36c5b0;--amber:#f0a93b;--red:#ff7a6e;
--violet:#b597ff;--gray:#778391;--good:#48d1bd;--bad:#ff8c82}}
*{box-sizing:border-box}
body{margin:0;background:var(--page);color:var(--text);line-height:1.45;
font-family:system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif;font-size:15px;
-webkit-text-size-adjust:100%;overflow-wrap:anywhere}
main{max-width:1120px;margin:0 auto;padding:28px 20px 40px}
h1{font-size:26px;line-height:1.2;margin:0 0 4px;letter-spacing:-.01em}
h2{font-size:17px;margin:0 0 2px}
header{margin-bottom:20px}
.source,.note{color:var(--soft);margin:0}
.note{font-size:13.5px;max-width:78ch}
.lead{font-size:17px;margin:12px 0 0;max-width:70ch}
.card,.tiles li{background:var(--card);border:1px solid var(--edge);border-radius:10px}
.card{padding:18px 20px;margin:0 0 16px}
.tiles{list-style:none;display:grid;grid-template-columns:repeat(auto-fit,minmax(150px,1fr));gap:12px;
margin:0 0 16px;padding:0}
.tiles li{padding:12px 14px}
.tiles .name{display:block;color:var(--soft);font-size:13px}
.tiles .value{display:block;font-size:22px;font-weight:650;line-height:1.3;font-variant-numeric:tabular-nums}
.tiles .hint{display:block;color:var(--soft);font-size:12.5px}
.good .value,.good.word{color:var(--good)}
.bad .value,.bad.word{color:var(--bad)}
.pair{display:grid;grid-template-columns:1fr 1fr;gap:0 16px}
.pair>*{min-width:0}
.notices{border-left:4px solid var(--amber)}
.notices ul{margin:6px 0 0;padding-left:18px}
.legend{list-style:none;display:flex;flex-wrap:wrap;gap:2px 18px;margin:8px 0 10px;padding:0;font-size:13.5px;
color:var(--soft)}
.legend b{color:var(--text);font-weight:600;font-variant-numeric:tabular-nums}
.key{display:inline-block;width:11px;height:11px;border-radius:3px;margin-right:6px;background:currentColor}
.blue{color:var(--blue)}.teal{color:var(--teal)}.amber{color:var(--amber)}.red{color:var(--red)}
.violet{color:var(--violet)}.gray{color:var(--gray)}
.chart{display:grid;grid-template-columns:72px minmax(0,1fr);grid-template-areas:"named marks" "rows plot" ". columns";
font-size:12px;color:var(--soft);font-variant-numeric:tabular-nums}
.marks,.rows,.plot,.columns{position:relative}
.marks{grid-area:marks;height:26px}
.named{grid-area:named;text-align:right;padding-right:8px;line-height:16px}
.rows{grid-area:rows}
.plot{grid-area:plot;height:220px}
.columns{grid-area:columns;height:22px}
.pair .plot{height:180px}
.marks span,.rows span,.columns span{position:absolute;white-space:nowrap;line-height:16px}
.marks span{padding-left:3px;bottom:1px}
.rows span{right:8px;transform:translateY(50%)}
.columns span{top:5px;transform:translateX(-50%)}
.columns .first{transform:none}
.columns .last{transform:translateX(-100%)}
svg{display:block;width:100%;height:100%}
.plot svg{overflow:hidden}
.line{fill:none;stroke:currentColor;stroke-width:1.8;stroke-linejoin:round;vector-effect:non-scaling-stroke}
.area{fill:currentColor;fill-opacity:.22;stroke:none}
.grid{stroke:var(--grid);stroke-width:1;vector-effect:non-scaling-stroke}
.mark{stroke:var(--soft);stroke-width:1;stroke-dasharray:3 3;vector-effect:non-scaling-stroke;opacity:.6}
table{width:100%;margin-top:8px;border-collapse:collapse;font-size:14px;font-variant-numeric:tabular-nums}
th{text-align:left;font-weight:600;color:var(--soft);font-size:13px;vertical-align:bottom}
th,td{padding:7px 14px 7px 0;border-bottom:1px solid var(--edge)}
th:last-child,td:last-child{padding-right:0}
tbody tr:last-child td,tbody tr:last-child th{border-bottom:0}
.num{text-align:right;white-space:nowrap}
.num .none{white-space:normal}
.bar{width:26%;min-width:120px}
.bar svg{height:12px;border-radius:3px;background:var(--grid)}
.bar rect{fill:currentColor}
.goal{stroke:var(--text);stroke-width:2;vector-effect:non-scaling-stroke}
.spread{stroke:var(--text);stroke-width:1.4;vector-effect:non-scaling-stroke;opacity:.75}
.word{font-weight:600}
.none{color:var(--soft)}
details{margin-top:8px}
summary{cursor:pointer;color:var(--soft);font-size:14px}
h2+summary,summary h2{display:inline}
footer{color:var(--soft);font-size:13px;margin-top:20px}
@media (max-width:860px){
.pair{grid-template-columns:1fr}
.stack thead{display:none}
.stack,.stack tbody{display:block}
.stack tr{display:grid;grid-template-columns:1fr 1fr;gap:2px 14px;padding:10px 0;border-bottom:1px solid var(--edge)}
.stack tr:last-child{border-bottom:0}
.stack th,.stack td{display:flex;justify-content:space-between;gap:10px;border:0;padding:0;text-align:left;
white-space:normal}
.stack .wide{grid-column:1/-1}
.stack th.wide{color:var(--text);font-size:14px}
.stack td[data-name]::before{content:attr(data-name);color:var(--soft);flex:none}
.stack .bar.none{display:none}
.stack .bar{width:auto;min-width:0;padding:3px 0}
}
@media (max-width:620px){
main{padding:18px 12px 28px}
h1{font-size:22px}
.lead{font-size:16px}
.card{padding:14px 14px}
.tiles{grid-template-columns:1fr 1fr;gap:8px}
.tiles .value{font-size:19px}
.chart{grid-template-columns:62px minmax(0,1fr)}
.plot,.pair .plot{height:170px}
}
@media print{body{background:#fff}.card,.tiles li{break-inside:avoid}}
)CSS";

}  // namespace sluice::cli
