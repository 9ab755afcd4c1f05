"""Workbooks from Excel before 2007, made by other programs."""

from __future__ import annotations

import base64
import zlib

#: A workbook of before 2007, made by xlwt for Germany: a sheet "Gehälter" with a merged title, heads and three rows of
#: which the second is hidden, and a hidden sheet.
OLD_WORKBOOK = (
    "c-rk)O-NKx6#nj;H^2BZnpP?e!-!TY!<d^kIw{nww7*3WK{?I~2c0p-abb(HY+4lrt&%o|6+u{Svgn7}1qDhif*??{Hm!n!7V32F"
    "nfGe62^=UvdEe!pckj9PyZ5|%&;5CCYO-W{^nT?GmZ1d}ET)~XW$6S(r;%}k%F}6?G@cHMX%lM-P6th-&5Fl`ukCUU<$TXT!9Dc_"
    "Nnn=ZQJh3aUtII9BHGx7P9be*7ApCkf@>6uP{DSUvg~5Hf#qGU`-J5#)?8xQOm(Nl5ljX<>UQdWd|2^uSrJKr3Ff?KO(V+jQu^_k"
    "%OX?Piq=H5vv=JWc+>)nft(<u#kGXYZ@~=|Kvbgv)f58oQw+chAMSX4@TgAQgbD=wff|omj9YL4k%&JQ^A8fHQAX}GhVN-F@Xgpa"
    "o_kIG>gol}7=A3(+yA0>(3I!W%bCulchRIT*I!Y{Cx(zdF681$(Mj=H%^VLQt$VIFsU=dh@Dg_Edp4=lqOptQM~xKbv6qh+84IN="
    "c6atB`@?hbh?cMd2a^LQG$OV~<I&haj5KY1@qvC?xUFFlp++foNYO+aS-;km(2_3M9Pe`OCA(Z9ul)j&5fpQ}gm(Zp89IOa>znrQ"
    "zTh#|4Drd9Isa<p%OQ=kl0oDmF0rzdC3VcGXL*iWt>Sbg%QC7-&)R+EdScHo*E!FnwbV}&<85$jR(czyQ(yK!^rSupw^MpNG;^wK"
    "{9SOA7NV1^7aWGsAR5HTRf$JI<0<r=@&n6?KXy%r;?`|X>xX<X7UVi6l(2k8V+0-@87#~YIT(T&Qf6|-cxG}6bB&yZa;o0DlA|q!"
    "+mfUD6q|X3O7W^{f^6Qzqc}3D=$2Tr*j}A&VYW?YTbMoTQ;1#9Y}b^*R&(^NGF!UIX+`EF`}z<uXs%VrR&+-XX38zp;st8)lRgF#"
    "7PKg(cpzVc&Z6H~4PO+$<XZJbk<%CDd-JFw*QlB>VZww76DC#;c~4OI#*(?eTJ;-=UH`AMKylIhO|our0DTma^a-~cae5{&n3w--"
    "gjE=Ai4}5;|Ai8VsP_bV5N11i^7dc4QHt#MSuxT5@0L)${V(QY=YQ`1C%6|m6#"
)


def xls_file() -> bytes:
    return zlib.decompress(base64.b85decode(OLD_WORKBOOK))


#: A workbook of before 2007, made by LibreOffice: a sheet "Pay" with parts of cells raised, lowered and struck.
WORKBOOK_OF_PARTS = (
    "c-rk(U2IfU5T0}Qr)NuPZwpl{Sg$Cw&_cEpwMMapf=GgCQz{ZeB1^klSGGUtPht~|i^vO+M8ktGB!;BX2aP{5(FaXz-+a*M3lADi3J*qu53"
    "A7_65I8gx#w;#%a-gehD7Py%suDK`I$Lq=FH6b_M6)I3m-LHqC9wn0<@ToP}oOPK<zbbBFoSgv)Qai&aS|J3KmSsIt)U8At39#!ss<($`$y"
    "3LLZIdn<R(!(Fn?Mnx<0V4p@wTy<+Ap7CEk1Sm9qjfA-((#{<Cp`_I0f?|&t56|f4p8dwdiaYF#r0_%WlfNO#EViQDn0@nfW0yY5G12+Kg1"
    "~wWQ98)shhx+}dy%}ZGir={<5Yf<LI7FYV{)$yDy1xXA_%Jvpc5xYal*ZULx?`yU=T^ZUks+p7hFKWtF4PpA2eq0$5bEdh-zC-u=pv`XSo9"
    "IAOJqMQ|BdpmCZ7MP%=um@ZLq^1#L8cnOQ5JibyJK|l%(VEgGr2NpfCA;y(}a6cBtLb!=rAlcZs)JhBuGUH<WH^4XfaY#$XlA@J-$yABm60"
    "QuA^{XXsD4c^=F<OlKxS|D!m%RU(~kJNgXHuFyHRxZ^YV^exNKTbH44U4|aHj(*O<?M+jbOFJEqvNj!-vMwEza!tBI%C+fG_L$s~)A0HI91"
    "aj0dSlbC!38LMb4mk=`p+u5LeFp@$n*)LaE2W|dkXJi;Kz1amEo)Ug&6fog}|a`RTutU)cBk2h8B$wqY*mvUx+S$(-{dt+Fi77Diwz~hhwQ"
    "JE)OP$lap8~K<&{sXD~KBK@!SB63T#(+2-ysbU8bt&dvv%_|*8Q3=6@}X?NKE*hCfS5Ow$LaFQcVTeRI7a#yO5l_D6-0WgcdrgwsF7#z^`z"
    "$N9@o6_Q;u1~eE@u^i<a1e*ZUZ_?M2*S~}?hRKiKiJUutkBa-uPfTbI-^!~5<PRltumuU{;$YbFV>zC+N<*4jQK+ehMzi{eD&tsx<7Yr@zp"
    "QDH%1^8iDE5qYgOy2!l&kr&3AgGqNmWK=_T1VsWZC9?6jJUwoL}1E!)&vU5}?~gr*A6tOB$^9&JI6-OV(}v=my(w3PH&xfb^YOv{qKV6Me|"
    "A=3&-UpUv|K33DO)XVE-o^W-O(Z+Cj8LXU%x@%^dg&xV+1u`p(DrFweVSbNUb@WNt4NpXm%2{&`<Vxx>01UzEhqQko<z;h~H_YV}vZO$zn*"
    "-X~a&Nrb^*HBTPbLRo^P`DLXWt70@s#uML)-de$K$C~T#jH*GLh)GncP#k$}bxhvm~}xU|pI&{nqbSd!Do3eM3`A)5qVj23|DxiTgWDe%fV"
    "D>7dC|kC<F_(B!LQ#zKEtaC1+tN6kDBuB#s!)WP(R%3m)<ezEY2Utc`GeZ76|O~~JR_5Ho<dGcsSO`hzzN!urDugS|99N(TTBcqqQ^PYE)j"
    "UA4UPb5c2uH7r!RNId2Q9!}-|2N-%B7dF@7Mc_Anf24)K29f)v9KH`O17Um?A9`VC|kn2>g@{8&bq;O7&g)a8J;hTf57(!D`w6;zymou??J"
    "{EFZ=$mcPsV%cdvP?xsmV?O=17T$Q)Vs2VeyW(Fs!~kwuPzvOF{!{-F}ie<Sd{9RI!GFd#C-#R5x{r=yJhZ}RcK-QWNJ0ArOSg#"
)


def xls_file_of_parts() -> bytes:
    return zlib.decompress(base64.b85decode(WORKBOOK_OF_PARTS))
