import time, gcnsim
def t(**k):
    a=time.process_time(); gcnsim.what_if(**k); return round(time.process_time()-a,2)
t(gpus=2,method="full-graph",processes=1,iterations=2)
for k in ({}, {"iterations":2}, {"iterations":6}):
    print(k, [t(gpus=4,method="pipegcn",processes=1,**k) for _ in range(3)], t(gpus=2,method="pipegcn",processes=1,**k), t(gpus=4,method="full-graph",processes=1,**k), t(gpus=4,method="psc-gcn",processes=1,**k))
