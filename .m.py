import gc, sys, time
gc.set_threshold(50000,10,10)
import re, dataclasses
t={'re':0.0,'dc':0.0}; n={'re':0,'dc':0}
if len(sys.argv)>1:
    import re._compiler as rc
    oc=rc.compile
    def comp(*a,**k):
        b=time.process_time()
        try: return oc(*a,**k)
        finally: t['re']+=time.process_time()-b; n['re']+=1
    rc.compile=comp; re._compiler.compile=comp
    od=dataclasses._process_class
    def pc(*a,**k):
        b=time.process_time()
        try: return od(*a,**k)
        finally: t['dc']+=time.process_time()-b; n['dc']+=1
    dataclasses._process_class=pc
b=time.process_time()
import rag.services
print(round(time.process_time()-b,3), t, n)
