from PIL import Image, ImageSequence, features
import time, io
im=Image.open("/tmp/w/st/animation.gif")
frames=[f.convert("RGB") for f in ImageSequence.Iterator(im)]
for q,m,kw in ((40,0,{}),(30,1,{}),(40,0,dict(kmax=60,kmin=30)),):
    t=time.time(); b=io.BytesIO()
    frames[0].save(b,format="WEBP",save_all=True,append_images=frames[1:],duration=50,loop=0,quality=q,method=m,minimize_size=False,**kw)
    print(q,m,kw,len(b.getvalue())/1e6,"MB",time.time()-t,"s")
if features.check("avif"):
  for q,s in ((45,10),(45,8)):
    t=time.time(); b=io.BytesIO()
    frames[0].save(b,format="AVIF",save_all=True,append_images=frames[1:],duration=50,quality=q,speed=s)
    print("avif",q,s,len(b.getvalue())/1e6,"MB",time.time()-t,"s")
