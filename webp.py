from PIL import Image, ImageSequence, features
import time, io
print(features.check("webp"), Image.__version__)
im=Image.open("/tmp/w/st/animation.gif")
frames=[f.convert("RGB") for f in ImageSequence.Iterator(im)]
print(len(frames), frames[0].size)
for q,m in ((50,2),(60,4),(75,2)):
    t=time.time(); b=io.BytesIO()
    frames[0].save(b,format="WEBP",save_all=True,append_images=frames[1:],duration=50,loop=0,quality=q,method=m,minimize_size=False)
    print(q,m,len(b.getvalue())/1e6,"MB",time.time()-t,"s")
for size,step,col in (((280,250),3,64),((336,300),2,64),((336,300),3,64)):
    small=[f.resize(size,Image.Resampling.BILINEAR) for f in frames[::step]]
    t=time.time(); b=io.BytesIO()
    pal=small[0].quantize(col)
    idx=[f.quantize(palette=pal,dither=0) for f in small]
    idx[0].save(b,format="GIF",save_all=True,append_images=idx[1:],duration=50*step,loop=0)
    print(size,step,len(b.getvalue())/1e6,"MB",time.time()-t)
