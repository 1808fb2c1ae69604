/*! Made of viewer/ of Weir (MIT OR Apache-2.0), and of:

uplot:
The MIT License (MIT)

Copyright (c) 2022 Leon Sorokin

Permission is hereby granted, free of charge, to any person obtaining a copy
of this software and associated documentation files (the "Software"), to deal
in the Software without restriction, including without limitation the rights
to use, copy, modify, merge, publish, distribute, sublicense, and/or sell
copies of the Software, and to permit persons to whom the Software is
furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in
all copies or substantial portions of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR
IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY,
FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE
AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER
LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM,
OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN
THE SOFTWARE.
hyparquet:
The MIT License (MIT)

Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated documentation files (the "Software"), to deal in the Software without restriction, including without limitation the rights to use, copy, modify, merge, publish, distribute, sublicense, and/or sell copies of the Software, and to permit persons to whom the Software is furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all copies or substantial portions of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.

fzstd:
MIT License

Copyright (c) 2020 Arjun Barrett

Permission is hereby granted, free of charge, to any person obtaining a copy
of this software and associated documentation files (the "Software"), to deal
in the Software without restriction, including without limitation the rights
to use, copy, modify, merge, publish, distribute, sublicense, and/or sell
copies of the Software, and to permit persons to whom the Software is
furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all
copies or substantial portions of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR
IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY,
FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE
AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER
LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM,
OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE
SOFTWARE.
*/
"use strict";(()=>{function L(t,o={},...i){let n=document.createElement(t);for(let[c,d]of Object.entries(o))n.setAttribute(c,d);return n.append(...i.filter(c=>c!==null)),n}var m=JSON.parse(document.getElementById("weir-page")?.textContent??"{}");function s(t){let o=document.getElementById(t);if(o===null)throw new Error(`the page has no ${t}`);return o}var w=t=>`${m.prefix}/view?${t.map(o=>`record=${encodeURIComponent(o)}`).join("&")}`;async function b(t,o){return await(await fetch(`${m.prefix}/${t}`,{method:"POST",headers:{"content-type":"application/json"},body:JSON.stringify(o)})).json()}function T(){let t=[...document.querySelectorAll("#rows tr")],o=s("search"),i=s("since"),n=["test","link","world"].map(e=>s(e)),c=s("open"),d=s("command"),l=d.textContent,g=t.map(e=>(e.textContent??"").toLowerCase()),r=()=>{let e=o.value.toLowerCase().split(/\s+/).filter(Boolean),f=0;t.forEach((h,y)=>{let E=e.every(p=>g[y]?.includes(p))&&n.every(p=>!p.value||h.dataset[p.id]===p.value)&&(!i.value||(h.dataset.date??"")>=i.value);h.hidden=!E,E&&f++}),s("count").textContent=`${f} shown`},a=()=>t.filter(e=>e.querySelector("input")?.checked),u=e=>e.dataset.place??"",v=()=>{let e=a();c.disabled=e.length===0,c.textContent=e.length>1?`Compare ${e.length}`:"Open",d.textContent=e.length?["weir report",...e.map(f=>f.dataset.word)].join(" "):l};for(let e of[o,i,...n])e.addEventListener("input",r);for(let e of t)e.querySelector("input")?.addEventListener("change",v),e.querySelector("a")?.setAttribute("href",w([u(e)]));c.addEventListener("click",()=>location.assign(w(a().map(u)))),r(),v()}function x(){let t=s("form"),o=s("start"),i=s("error"),n=()=>{let r=new FormData(t),a={};for(let u of new Set(r.keys()))a[u]=u==="queue"?r.getAll(u):r.get(u);return a},c=r=>{i.hidden=r===void 0,i.textContent=r===void 0?"":String(r),o.disabled=r!==void 0},d=0,l=async()=>{let r=++d,a=await b("check",n());r===d&&(c(a.error),s("command").textContent=String(a.command??""))},g=0;t.addEventListener("input",()=>{clearTimeout(g),g=setTimeout(()=>{l()},250)}),t.addEventListener("submit",r=>{r.preventDefault(),o.disabled=!0,b("start",n()).then(a=>{a.error===void 0?location.assign(`${m.prefix}/runs/${String(a.number)}`):c(a.error)})}),l()}function C(){let t=s("stop");t.addEventListener("click",()=>{b(`runs/${m.number}/stop`,{})});let o=async()=>{let n=await(await fetch(`${m.prefix}/runs/${m.number}/state`)).json();s("output").textContent=n.lines.join(`
`);let c=n.records.filter(l=>l.complete).length;s("progress").value=c,s("state").textContent=n.code===null?`under way: ${c} records are complete`:n.code===0?"done":`ended with exit code ${n.code}`;let d=n.records.map(l=>l.place).sort();if(d.length){let l=n.code===null?"Look at what there is so far":"Open the records";s("made").replaceChildren(L("a",{href:w(d.slice(0,24))},l))}n.code===null?setTimeout(()=>{o()},700):t.disabled=!0};o()}var k={records:T,new:x,run:C};k[m.page]?.();})();
